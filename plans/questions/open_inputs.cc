#include "plans/questions/open_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include "core/base/normal.h"
#include "core/machine/node_rate.h"
#include "core/scenario/measured_stack.h"
#include "lowering/passes/step_habits.h"
#include "plans/questions/other_networks.h"
#include "plans/search/layouts.h"
#include "plans/search/parallel_for.h"
#include "sim/step/predict.h"

namespace tpsim {

struct OpenInputs::Other {
  OpenInput input{};
  Scenario scenario;
  // Set in a copy of a stack: the stated part that only this copy has. Empty in the stack with its
  // own parts.
  std::optional<StackPart> stated = {};
  bool is_taken = false;                     // the assumed stack
  std::unique_ptr<LayerPricer> pricer = {};  // created at first use
};

struct OpenInputs::State {
  ClusterSpec cluster;
  std::array<std::string, 6> assumed;  // names of the assumed entries, by OpenInput
  // Each stack is followed by its copies, one for each stated part that differs. The assumed stack
  // is the first, unless no stated part differs from its own.
  std::vector<Other> others;
  PartValues stated;              // parts that the user stated
  bool narrow_gradients = false;  // of the assumed software with the stated parts
  // Op prices by Fp32Matmul, which is their only difference between alternatives: profile and GPU
  // clock are the same. Shared by the threads that price alternatives.
  std::map<Fp32Matmul, std::shared_ptr<const OpCostModel>> ops;
  std::mutex ops_mutex;

  Status add_software(const Catalogue& catalogue, const Scenario& scenario,
                      const ScenarioNames& names, OpenInput input);
  void add_kernels(const StackSpec& listed, const Scenario& scenario, const PartValues& parts);
  void add_documents(const Scenario& scenario);
  LayerPricer& pricer_of(Other& other);
};

namespace {

// Returns the plan and equivalent plans with other settings, since a launcher may support only one
// of them. Without data-parallel replicas, ZeRO 0 and 1 are equivalent. Rank orders are equivalent
// if they place every group on the same nodes.
std::vector<Plan> spellings_of(const Scenario& scenario, const Plan& plan) {
  std::vector<Plan> all = {plan};
  if (plan.zero <= 1 && plan.degrees.dp * plan.degrees.cp == 1) {
    all.push_back(plan);
    all.back().zero = 1 - plan.zero;
  }
  if (rank_order_matters(scenario, plan)) return all;
  for (std::size_t i = 0, n = all.size(); i < n; ++i) {
    Plan other = all[i];
    other.rank_order =
        plan.rank_order == RankOrder::kTpDpPp ? RankOrder::kTpPpDp : RankOrder::kTpDpPp;
    all.push_back(other);
  }
  return all;
}

// Sums of the squared distances of alternatives, separate for slower and faster ones.
struct Squares {
  std::int64_t others = 0;
  double slower = 0, faster = 0;

  void add(double away) {
    (away > 0 ? slower : faster) += away * away;
    ++others;
  }
  // Root mean square. The assumed entry counts as one more alternative, with distance 0.
  double spread(double squares) const {
    return std::sqrt(squares / static_cast<double>(others + 1));
  }
};

double half_width(double own, double squares) {
  return std::exp(std::sqrt(own * own + kHalfOf90 * kHalfOf90 * squares)) - 1;
}

// `own`: half width of the 90 % interval of log(step) with every input stated.
void fill_half_widths(Assumed& assumed, double own) {
  double all = 0;
  for (const OpenChoice& one : assumed.open) all += one.slower * one.slower;
  for (OpenChoice& one : assumed.open) {
    one.half_width_if_stated = half_width(own, all - one.slower * one.slower);
  }
  assumed.half_width_all_stated = half_width(own, 0);
  assumed.half_width_all_open = half_width(own, all);
  std::stable_sort(assumed.open.begin(), assumed.open.end(),
                   [](const OpenChoice& a, const OpenChoice& b) { return a.slower > b.slower; });
}

void widen_by(const Assumed& assumed, Prediction& prediction) {
  double slower = 0, faster = 0;
  for (const OpenChoice& one : assumed.open) {
    slower += one.slower * one.slower;
    faster += one.faster * one.faster;
  }
  widen_interval(prediction, {std::sqrt(faster), std::sqrt(slower)});
}

// Returns the factor by which a stated part shrinks a distance, between 0 and 1. `with_part`: step
// of the alternative with this part; empty if the alternative cannot have the part, which gives 0.
// `taken`: step of the assumed stack with this part.
double share_left(double distance, const std::optional<OpenStep>& with_part, Seconds taken) {
  if (!with_part || distance == 0) return 0;
  return std::clamp(std::log(with_part->step / taken) / distance, 0.0, 1.0);
}

// Returns the spread after a statement, such that it and the own spread `own` are together at most
// what they were before.
double limited_spread(double after, double own, double before, double own_before) {
  if (own <= own_before) return after;
  const double most = before * before + own_before * own_before - own * own;
  return std::min(after, std::sqrt(std::max(0.0, most)));
}

}  // namespace

Status OpenInputs::State::add_software(const Catalogue& catalogue, const Scenario& scenario,
                                       const ScenarioNames& names, OpenInput input) {
  stated = names.parts;
  const auto add_copy = [&](const StackSpec& own, const PartValues& parts) -> Other& {
    Other& other = others.emplace_back(Other{input, scenario});
    other.scenario.stack = completed_stack(own, parts, scenario.profile, scenario.cluster);
    return other;
  };
  const auto add = [&](const StackSpec& own, bool is_taken) {
    add_copy(own, {}).is_taken = is_taken;
    for (const auto& [part, value] : stated) {
      if (row_of(part).get(own) == value) continue;
      Other& copy = add_copy(own, {{part, value}});
      copy.stated = part;
      copy.is_taken = is_taken;
    }
  };
  TPSIM_TRY(const StackSpec taken, catalogue.load_stack(names.stack));
  const bool is_changed = std::any_of(stated.begin(), stated.end(), [&](const auto& part) {
    return row_of(part.first).get(taken) != part.second;
  });
  // The plan may run although the stack's launcher refuses it (--ignore-stack-limits).
  if (is_changed) add(without_limits(taken), true);
  for (const std::string& name : catalogue.list(CatalogueKind::kStacks)) {
    TPSIM_TRY(const StackSpec own, catalogue.load_stack(name));
    // Skips stacks without aliases: the reference model, and stacks made for a single table of
    // runs.
    if (name != names.stack && !own.aliases.empty()) add(own, false);
  }
  return Ok{};
}

void OpenInputs::State::add_kernels(const StackSpec& listed, const Scenario& scenario,
                                    const PartValues& parts) {
  const PartRow& row = row_of(StackPart::kAttentionKernel);
  const auto kernels = listed.choices.parts.find(row.part);
  if (parts.contains(row.part) || kernels == listed.choices.parts.end()) return;
  const std::int64_t own = row.get(scenario.stack);
  assumed[static_cast<std::size_t>(OpenInput::kKernel)] = text_of(row, own);
  for (const std::int64_t kernel : kernels->second) {
    if (kernel == own) continue;
    Other& other = others.emplace_back(Other{OpenInput::kKernel, scenario});
    row.set(other.scenario.stack, kernel);
  }
}

void OpenInputs::State::add_documents(const Scenario& scenario) {
  if (!masks_documents(scenario.stack)) return;
  // 156 billion tokens in 365 million documents: Dodge et al. 2021, arXiv 2104.08758, table 1.
  constexpr std::int64_t kTokensOfDocument = 427;
  const auto mask = [](AttentionShape& attention) {
    if (attention.window == 0 && attention.chunk == 0) attention.chunk = kTokensOfDocument;
  };
  Other& other = others.emplace_back(Other{OpenInput::kDocuments, scenario});
  // Some launchers refuse models with chunks.
  other.scenario.stack = without_limits(std::move(other.scenario.stack));
  mask(other.scenario.model.attention);
  for (BlockShape& block : other.scenario.model.other_blocks) mask(block.attention);
}

LayerPricer& OpenInputs::State::pricer_of(Other& other) {
  if (other.pricer) return *other.pricer;
  const std::lock_guard lock(ops_mutex);
  std::shared_ptr<const OpCostModel>& shared = ops[fp32_matmul(other.scenario.stack)];
  const auto lists = std::make_shared<const PriceLists>(other.scenario, shared);
  shared = lists->ops;
  other.pricer = std::make_unique<LayerPricer>(lists, false);
  return *other.pricer;
}

OpenInputs::OpenInputs() : state_(std::make_unique<State>()) {}
OpenInputs::~OpenInputs() = default;
OpenInputs::OpenInputs(OpenInputs&&) noexcept = default;
OpenInputs& OpenInputs::operator=(OpenInputs&&) noexcept = default;

Result<OpenInputs> OpenInputs::in(const Catalogue& catalogue, const Scenario& scenario,
                                  const ScenarioNames& names, const Unstated& unstated) {
  OpenInputs inputs;
  State& state = *inputs.state_;
  state.cluster = scenario.cluster;
  state.narrow_gradients = has_narrow_gradients(scenario.stack.parts);
  const LinkSpec& link = scenario.cluster.intra_node;
  state.assumed = {scenario.stack.name,
                   "of " + scenario.cluster.name,
                   fmt::format("without {}", fmt::join(unstated.settings, ", ")),
                   fmt::format("{} with {:.1f} GB/s of NCCL", link.kind,
                               link.efficiency * link.bandwidth.value() / 1e9),
                   "",
                   "one per sequence"};
  // CPUs, which execute synchronously, run only the reference model.
  const bool has_other_software = scenario.profile.device.asynchronous;
  if (has_other_software && (unstated.software || !unstated.settings.empty())) {
    // If the software is unstated, its alternatives also cover the unknown settings.
    const OpenInput input = unstated.software ? OpenInput::kSoftware : OpenInput::kSettings;
    TPSIM_TRY_STATUS(state.add_software(catalogue, scenario, names, input));
  }
  if (has_other_software) {
    TPSIM_TRY(const StackSpec listed, catalogue.load_stack(names.stack));
    state.add_kernels(listed, scenario, names.parts);
    state.add_documents(scenario);
  }
  if (unstated.network && names.node_gbps == 0) {
    TPSIM_TRY(std::vector<Scenario> found, other_networks(catalogue, scenario, names.cluster));
    for (Scenario& one : found) state.others.push_back({OpenInput::kNetwork, std::move(one)});
  }
  const std::vector<std::string> clusters = catalogue.list(CatalogueKind::kClusters);
  const bool is_listed =
      std::find(clusters.begin(), clusters.end(), names.cluster) != clusters.end();
  if (is_listed && is_open(link)) {
    TPSIM_TRY(std::vector<Scenario> found, other_links(catalogue, scenario));
    for (Scenario& one : found) state.others.push_back({OpenInput::kLink, std::move(one)});
  }
  return inputs;
}

std::optional<OpenStep> OpenInputs::step_on(Other& other, const Plan& plan) const {
  const bool spans_nodes = gpu_count(plan) > state_->cluster.gpus_per_node;
  if (other.input == OpenInput::kNetwork && !spans_nodes) return std::nullopt;
  if (other.input == OpenInput::kLink && gpu_count(plan) == 1) return std::nullopt;
  for (Plan& spelling : spellings_of(other.scenario, plan)) {
    // Uses the gradient dtype that `tpsim simulate` assumes if a command does not state one.
    const bool narrow = has_narrow_gradients(other.scenario.stack.parts);
    if (narrow || state_->narrow_gradients) {
      spelling.gradient_dtype = narrow ? spelling.dtype : Plan{}.gradient_dtype;
    }
    if (!check_plan(other.scenario, spelling).ok()) continue;
    const Result<Prediction> predicted = predict(state_->pricer_of(other), spelling);
    if (predicted.ok()) return OpenStep{predicted->step, spreads_of(*predicted)};
  }
  return std::nullopt;
}

bool OpenInputs::price_next(const Plan& plan, OpenSteps& steps) {
  if (steps.size() == state_->others.size()) return false;
  steps.push_back(step_on(state_->others[steps.size()], plan));
  return true;
}

OpenInputs::StackSteps OpenInputs::steps_at(std::size_t first, const OpenSteps& steps) const {
  const std::vector<Other>& others = state_->others;
  StackSteps found{steps[first]};
  for (std::size_t i = first + 1; i < steps.size() && others[i].stated; ++i) {
    found.with_part[*others[i].stated] = steps[i];
  }
  return found;
}

std::optional<OpenChoice> OpenInputs::choice_of_range(OpenInput input, const OpenStep& own,
                                                      const OpenSteps& steps) const {
  Prediction range;
  range.step = range.step_low = range.step_high = own.step;
  std::int64_t others = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (state_->others[i].input != input || !steps[i]) continue;
    range.step_low = std::min(range.step_low, steps[i]->step);
    range.step_high = std::max(range.step_high, steps[i]->step);
    ++others;
  }
  if (range.step_low == range.step_high) return std::nullopt;
  const StepSpreads spreads = spreads_of(range);
  OpenChoice choice{input, state_->assumed[static_cast<std::size_t>(input)], others};
  choice.slower = spreads.slower;
  choice.faster = spreads.faster;
  return choice;
}

std::optional<OpenChoice> OpenInputs::choice_of(OpenInput input, const OpenStep& own,
                                                const OpenSteps& steps) const {
  if (input != OpenInput::kSoftware && input != OpenInput::kSettings &&
      input != OpenInput::kNetwork) {
    return choice_of_range(input, own, steps);
  }
  const std::vector<Other>& others = state_->others;
  // A plan that runs only with the stated parts has the same step for each of them.
  StackSteps taken{own};
  Squares before, after;  // without and with the stated parts
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (others[i].input != input || others[i].stated) continue;
    const StackSteps stack = steps_at(i, steps);
    if (others[i].is_taken && stack.own) taken = stack;
    if (others[i].is_taken || !stack.own) continue;
    const double away = std::log(stack.own->step / taken.own->step);
    double left = 1;
    for (const auto& [part, value] : state_->stated) {
      const std::optional<OpenStep> with_taken = taken.with(part);
      const bool is_software = input != OpenInput::kNetwork;
      if (is_software && with_taken) left *= share_left(away, stack.with(part), with_taken->step);
    }
    before.add(away);
    after.add(away * left);
  }
  if (after.others == 0) return std::nullopt;
  const StepSpreads& first = taken.own->own;
  OpenChoice choice{input, state_->assumed[static_cast<std::size_t>(input)], after.others};
  choice.slower = limited_spread(after.spread(after.slower), own.own.slower,
                                 before.spread(before.slower), first.slower);
  choice.faster = limited_spread(after.spread(after.faster), own.own.faster,
                                 before.spread(before.faster), first.faster);
  const double all = before.slower + before.faster;
  if (all > 0) choice.left = std::sqrt((after.slower + after.faster) / all);
  return choice;
}

Assumed OpenInputs::widen(Prediction& prediction, const OpenSteps& steps) const {
  Assumed assumed;
  const OpenStep own{prediction.step, spreads_of(prediction)};
  for (const OpenInput input : all_of<OpenInput>()) {
    if (auto choice = choice_of(input, own, steps)) assumed.open.push_back(*std::move(choice));
  }
  if (assumed.open.empty()) return assumed;
  fill_half_widths(assumed, std::log(prediction.step_high / prediction.step));
  widen_by(assumed, prediction);
  return assumed;
}

// A plan that an alternative cannot run is shifted as the first plan, so that the order stays.
std::vector<OpenShift> OpenInputs::shifts_of(std::span<const PlannedRun> runs,
                                             const std::vector<OpenSteps>& by_other,
                                             const Assumed& assumed) const {
  std::vector<OpenShift> shifts;
  for (std::size_t i = 0; i < by_other.size(); ++i) {
    const Other& other = state_->others[i];
    const auto choice =
        std::find_if(assumed.open.begin(), assumed.open.end(),
                     [&](const OpenChoice& one) { return one.input == other.input; });
    const bool counts = choice != assumed.open.end() && !other.stated && !other.is_taken;
    if (!counts || !by_other[i].front()) continue;
    OpenShift& shift = shifts.emplace_back(OpenShift{other.input, {}});
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const std::optional<OpenStep>& step = by_other[i][run];
      shift.of_plans.push_back(step ? choice->left * std::log(step->step / runs[run].predicted.step)
                                    : shift.of_plans.front());
    }
  }
  return shifts;
}

Assumed OpenInputs::widen(std::span<PlannedRun> runs, int threads) {
  std::vector<OpenSteps> by_other(state_->others.size());
  const auto price = [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    for (const PlannedRun& run : runs) by_other[i].push_back(step_on(state_->others[i], run.plan));
  };
  parallel_for(std::ssize(by_other), threads, [&] { return IndexWork(price); });
  std::optional<Assumed> first;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    OpenSteps steps;
    for (const OpenSteps& of_other : by_other) steps.push_back(of_other[run]);
    Assumed assumed = widen(runs[run].predicted, steps);
    if (!first) first = std::move(assumed);
  }
  if (first) first->shifts = shifts_of(runs, by_other, *first);
  return first.value_or(Assumed{});
}

}  // namespace tpsim
