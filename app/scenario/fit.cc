#include "app/scenario/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/scenario/available_part.h"
#include "core/base/numbers.h"
#include "core/scenario/catalogue.h"
#include "core/software/part_rules.h"
#include "plans/questions/why_illegal.h"
#include "plans/search/usual_batch.h"

namespace tpsim::app {

std::vector<Relaxation> relaxations(const SearchSpace& space) {
  std::vector<Relaxation> all;
  const std::span<const SettingRow> rows = setting_rows();
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (space.asked[row->setting].empty() || row->counts_for != nullptr) continue;
    all.push_back({std::string(option_of(row->setting)), space});
    SettingLists& asked = all.back().space.asked;
    asked[row->setting].clear();
    for (const SettingRow& other : rows) {
      const bool counts = other.counts_for != nullptr && other.counts_for->setting == row->setting;
      if (counts) asked[other.setting].clear();
    }
  }
  if (!space.excluded.empty()) {
    all.push_back({"--exclude", space});
    all.back().space.excluded.clear();
  }
  if (space.memory_limit.value() > 0) {
    all.push_back({"--max-memory", space});
    all.back().space.memory_limit = Bytes();
  }
  return all;
}
namespace {

// If no layout is legal, the search for a usable number of GPUs tries at most this many more or
// fewer.
constexpr std::int64_t kNeighbourhood = 64;

std::string largest_category(const StageMemory& memory) {
  const auto largest = std::max_element(memory.by_category.begin(), memory.by_category.end());
  const auto category = static_cast<MemoryCategory>(largest - memory.by_category.begin());
  return fmt::format("{:.0f} % of the peak is {}", *largest / memory.total() * 100,
                     name_of(category));
}

std::int64_t gpus_of(const ClusterSpec& cluster) { return cluster.nodes * cluster.gpus_per_node; }

// Searches with the default limits of time and memory, also with --no-limits. The search is for a
// suggestion only.
Result<SearchResult> limited_search(Scenario scenario, const SearchSpace& space) {
  scenario.limits = {};
  return search(scenario, space, 1, {});
}

// Returns the best plan that fits in memory, if there is one.
std::optional<PlannedRun> best_of(const Scenario& scenario, SearchSpace space) {
  space.wants_nearest_miss = false;
  const Result<SearchResult> found = limited_search(scenario, space);
  if (!found.ok() || found->plans.empty()) return std::nullopt;
  return found->plans.front();
}

std::string fits_text(const PlannedRun& run) {
  return fmt::format("{} fits in {} GiB", short_name(run.plan), gib_text(run.predicted.peak));
}

// Out-of-memory probability that is suggested with --max-oom if dropping a single constraint does
// not help.
constexpr double kDaring = 0.5;

// Returns the search space without constraints except GPUs, batch, dtypes and objective.
SearchSpace unconstrained(const SearchSpace& space) {
  SearchSpace open;
  open.gpus = space.gpus;
  open.global_batch = space.global_batch;
  for (const Setting setting : {Setting::kDtype, Setting::kGradientDtype}) {
    open.asked[setting] = space.asked[setting];
  }
  open.objective = space.objective;
  return open;
}

// Suggests another stack with which the optimizer state can be offloaded, if this stack cannot
// offload it.
std::string offloaded_elsewhere(const Scenario& scenario, SearchSpace space) {
  const SettingValue offloaded{Setting::kOffload, static_cast<std::int64_t>(Offload::kOptimizer)};
  const Result<Catalogue> catalogue = Catalogue::open();
  if (!catalogue.ok() || scenario.stack.choices.has(offloaded)) return "";
  space.asked[Setting::kOffload] = {offloaded.value};
  for (const std::string& name : catalogue->list(CatalogueKind::kStacks)) {
    Result<StackSpec> stack = catalogue->load_stack(name);
    if (!stack.ok() || stack->launcher == Launcher::kNone) continue;
    Scenario other = scenario;
    other.stack = std::move(*stack);
    if (const auto run = best_of(other, space)) {
      return fmt::format("with --stack {} --offload optimizer {}", name, fits_text(*run));
    }
  }
  return "";
}

// Software parts that save memory and compute the same training.
constexpr PartWord kMemorySavers[] = {{StackPart::kGradientSync, "every_micro_batch"},
                                      {StackPart::kLossHead, "fused"},
                                      {StackPart::kLossHead, "chunked"}};

// Suggests software parts with which a plan fits: one part, or one in addition to `stated`, which
// is the text of parts that the stack already has.
std::string saved_by_software(const Scenario& scenario, const SearchSpace& space,
                              const std::string& stated = "") {
  std::string with_two;
  for (const PartWord& saver : kMemorySavers) {
    const std::optional<std::int64_t> value = available_value(scenario.stack, saver);
    if (!value) continue;
    Scenario other = scenario;
    other.stack = with_parts(scenario.stack, {{saver.part, *value}});
    const std::string options = fmt::format("{}{} {}", stated, option_of(saver.part), saver.word);
    const auto run = best_of(other, space);
    if (run && broken_part_rule(other.stack, other.model, run->plan) == nullptr) {
      return fmt::format("with {} {}", options, fits_text(*run));
    }
    const bool is_first = stated.empty() && with_two.empty();
    if (is_first) with_two = saved_by_software(other, space, options + " ");
  }
  return with_two;
}

// Suggests how a plan can fit. Tries in this order: drop one constraint, accept a higher risk, drop
// all constraints, use software that saves memory, double the GPUs repeatedly, use a stack that
// offloads optimizer state.
std::string remedy(const Scenario& scenario, const SearchSpace& space, bool batch_matters) {
  const std::vector<Relaxation> constraints = relaxations(space);
  for (const Relaxation& without : constraints) {
    if (const auto run = best_of(scenario, without.space)) {
      return fmt::format("without {}: {}", without.option, fits_text(*run));
    }
  }
  if (space.oom_risk < kDaring) {
    SearchSpace daring = space;
    daring.oom_risk = kDaring;
    if (const auto run = best_of(scenario, daring)) {
      return fmt::format("with --max-oom {:.0f}%: {}", 100 * kDaring, fits_text(*run));
    }
  }
  SearchSpace open = unconstrained(space);
  if (constraints.size() > 1) {
    if (const auto run = best_of(scenario, open)) {
      return fmt::format("on the same {} {}", gpus_text(open.gpus), fits_text(*run));
    }
  }
  if (std::string saved = saved_by_software(scenario, space); !saved.empty()) return saved;
  const std::int64_t most = gpus_of(scenario.cluster);
  while (open.gpus < most) {
    open.gpus = std::min(open.gpus * 2, most);
    if (const auto run = best_of(scenario, open)) {
      return fmt::format("on {} {}", gpus_text(open.gpus), fits_text(*run));
    }
  }
  if (std::string offloaded = offloaded_elsewhere(scenario, space); !offloaded.empty()) {
    return offloaded;
  }
  return fmt::format(
      "no plan fits even on all {} of {}: use GPUs with more memory or a shorter --seq{}",
      gpus_text(most), scenario.cluster.name, batch_matters ? ", or a smaller --global-batch" : "");
}

// Whether the search space has a legal plan on `gpus` GPUs. Settings that do not affect legality
// are fixed to one value to save time, unless the launcher's rules may refuse that value.
bool has_legal_plan(const Scenario& scenario, SearchSpace space, std::int64_t gpus) {
  if (gpus < 1 || gpus > gpus_of(scenario.cluster)) return false;
  space.gpus = gpus;
  const auto settle = [&](Setting setting, auto value) {
    std::vector<std::int64_t>& asked = space.asked[setting];
    if (asked.empty()) asked = {static_cast<std::int64_t>(value)};
  };
  if (scenario.stack.launcher == Launcher::kNone) {
    settle(Setting::kZero, 0);
    settle(Setting::kAttention, AttentionKind::kUnfused);
  }
  if (scenario.stack.choices.has(
          {Setting::kRecompute, static_cast<std::int64_t>(Recompute::kFull)}))
    settle(Setting::kRecompute, Recompute::kFull);
  const Result<SearchResult> found = limited_search(scenario, space);
  return found.ok() && (!found->plans.empty() || found->nearest_miss.has_value());
}

// Returns a text with the nearest smaller and larger numbers of GPUs that have a legal layout.
std::string nearest_legal_counts(const Scenario& scenario, const SearchSpace& space) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (std::int64_t step = 1; step <= kNeighbourhood && (below == 0 || above == 0); ++step) {
    if (below == 0 && has_legal_plan(scenario, space, space.gpus - step)) below = space.gpus - step;
    if (above == 0 && has_legal_plan(scenario, space, space.gpus + step)) above = space.gpus + step;
  }
  if (below == 0 && above == 0) return "";
  if (below == 0 || above == 0) return gpus_text(std::max(below, above)) + " can be used";
  return fmt::format("{} or {} can be used", below, gpus_text(above));
}

// Returns the names of catalogue stacks with which the space has a legal plan.
std::string stacks_that_can(const Scenario& scenario, const SearchSpace& space) {
  std::string names;
  const Result<Catalogue> catalogue = Catalogue::open();
  if (!catalogue.ok()) return names;
  for (const std::string& name : catalogue->list(CatalogueKind::kStacks)) {
    Result<StackSpec> stack = catalogue->load_stack(name);
    if (!stack.ok() || stack->launcher == Launcher::kNone) continue;
    Scenario other = scenario;
    other.stack = std::move(*stack);
    if (!has_legal_plan(other, space, space.gpus)) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

// Returns the error for options that exclude each other. Dropping any one of them makes a layout
// legal.
Error conflict(const Scenario& scenario, const SearchSpace& space,
               const std::vector<std::string>& options, const std::string& reason) {
  const std::string stacks = stacks_that_can(scenario, space);
  const bool alone = options.size() == 1;
  const std::string why =
      !reason.empty()
          ? reason
          : fmt::format("the product tp x pp x dp x cp cannot be {}", gpus_text(space.gpus));
  return bad_input(fmt::format("no layout of {} on {} with global batch {} satisfies {}: {}",
                               scenario.model.name, gpus_text(space.gpus), space.global_batch,
                               alone ? "this option" : "these options together", why),
                   fmt::format("{}", fmt::join(options, " with ")),
                   (alone ? "drop this option" : "drop any one of these options") +
                       (stacks.empty() ? "" : ", or use --stack with one of: " + stacks));
}

Error nothing_legal(const Scenario& scenario, const SearchSpace& space, const SearchResult& found) {
  const std::string reason = deciding_reason(scenario, space, found);
  std::vector<std::string> conflicting;
  for (const Relaxation& without : relaxations(space)) {
    if (has_legal_plan(scenario, without.space, space.gpus)) {
      conflicting.insert(conflicting.begin(), without.option);
    }
  }
  if (!conflicting.empty()) return conflict(scenario, space, conflicting, reason);
  SearchSpace other = space;
  other.global_batch = divisible_batch(space.global_batch, space.gpus);
  const bool has_batch =
      other.global_batch != space.global_batch && has_legal_plan(scenario, other, space.gpus);
  return bad_input(
      fmt::format("no layout uses {} with {} and global batch {}{}{}", gpus_text(space.gpus),
                  scenario.model.name, space.global_batch, reason.empty() ? "" : ": ", reason),
      "--gpus",
      nearest_legal_counts(scenario, space) +
          (has_batch ? fmt::format(", or --global-batch {}", other.global_batch) : ""));
}

Error does_not_fit(const Scenario& scenario, const PlannedRun& run, double most_chance) {
  SearchSpace space = space_around(run.plan);
  space.oom_risk = std::min(space.oom_risk, most_chance);
  const auto other = best_of(scenario, space);
  const std::string fits =
      other ? fmt::format("on the same {} {}", gpus_text(space.gpus), fits_text(*other))
            : remedy(scenario, space, run.plan.micro_batch > 1);
  return Error{ErrorKind::kDoesNotFit,
               fmt::format("{} does not fit: it {}", short_name(run.plan),
                           misfit_text(run.predicted, most_chance)),
               "", fits + "; --allow-oom accepts the plan anyway"};
}

}  // namespace

const StageMemory& fullest_stage(const Prediction& predicted) {
  TPSIM_CHECK(!predicted.memory.empty(), "the prediction has no stages");
  return *std::max_element(
      predicted.memory.begin(), predicted.memory.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.total() < b.total(); });
}

std::string shortage_text(const Prediction& predicted, Bytes limit) {
  const StageMemory& stage = fullest_stage(predicted);
  const std::string allowed = limit < predicted.capacity
                                  ? fmt::format("the limit of {} GiB (the GPU has {} GiB)",
                                                gib_text(limit), gib_text(predicted.capacity))
                                  : fmt::format("the GPU's {} GiB", gib_text(predicted.capacity));
  return fmt::format("needs {} GiB on stage {}, {} GiB more than {}; {}", gib_text(predicted.peak),
                     stage.stage, gib_text(predicted.peak - limit), allowed,
                     largest_category(stage));
}

std::string misfit_text(const Prediction& predicted, double most_chance) {
  if (predicted.host_memory > predicted.host_capacity) {
    return fmt::format(
        "needs {} GiB of host memory per node for the optimizer; the node has {} GiB",
        gib_text(predicted.host_memory), gib_text(predicted.host_capacity));
  }
  if (predicted.peak > predicted.capacity) {
    return shortage_text(predicted, predicted.capacity);
  }
  return fmt::format(
      "runs out of memory with a probability of {:.3g} %, more than the accepted {:.3g} %: it "
      "needs {} of {} GiB",
      100 * predicted.p_oom, 100 * most_chance, gib_text(predicted.peak),
      gib_text(predicted.capacity));
}

Status check_fit(const AcceptedRisk& accepted, const Scenario& scenario, const PlannedRun& run) {
  const double most = accepted.max_oom.value_or(kRefusedChance);
  if (fits_in_memory(run.predicted, most) || accepted.allow_oom) return Ok{};
  return does_not_fit(scenario, run, most);
}

Status check_stated_risk(const AcceptedRisk& accepted, const std::string& name,
                         const Prediction& predicted) {
  if (!accepted.max_oom || fits_in_memory(predicted, *accepted.max_oom)) return Ok{};
  return Error{
      ErrorKind::kDoesNotFit,
      fmt::format("{} does not fit: it {}", name, misfit_text(predicted, *accepted.max_oom)), "",
      "a larger --max-oom accepts the plan"};
}

Error nothing_fits(const Scenario& scenario, const SearchSpace& space, const SearchResult& found) {
  if (!found.nearest_miss) return nothing_legal(scenario, space, found);
  const PlannedRun& miss = *found.nearest_miss;
  return Error{ErrorKind::kDoesNotFit,
               fmt::format("no plan of {} fits on {}: the closest plan, {}, {}",
                           scenario.model.name, gpus_text(space.gpus), short_name(miss.plan),
                           shortage_text(miss.predicted, memory_limit(scenario, space))),
               "", remedy(scenario, space, miss.plan.micro_batch > 1)};
}

}  // namespace tpsim::app
