#include "app/scenario/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "app/scenario/fitting_search.h"
#include "core/base/numbers.h"
#include "core/scenario/catalogue.h"
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

// Suggests software with which a plan fits. `may_change_stack`: also with another stack than a
// stated one.
std::string fits_with_software(NamedScenario named, const SearchSpace& space,
                               bool may_change_stack) {
  named.stack_is_default = may_change_stack;
  named.is_saved = false;
  const Result<SearchResult> found = search_until_fit(
      named, space, {},
      [&](const Scenario& one, const Progress&) { return limited_search(one, space); });
  if (!found.ok() || found->plans.empty() || named.remedy.empty()) return "";
  return fmt::format("{}: {}", named.remedy.substr(named.remedy.find("with --")),
                     fits_text(found->plans.front()));
}

// Suggests how a plan can fit. Tries in this order: drop one constraint, use other software, accept
// a higher risk, drop all constraints, double the GPUs repeatedly.
std::string remedy(const NamedScenario& named, const SearchSpace& space, bool batch_matters) {
  const Scenario& scenario = named.scenario;
  const std::vector<Relaxation> constraints = relaxations(space);
  for (const Relaxation& without : constraints) {
    if (const auto run = best_of(scenario, without.space)) {
      return fmt::format("without {}: {}", without.option, fits_text(*run));
    }
  }
  if (std::string fits = fits_with_software(named, space, true); !fits.empty()) return fits;
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
  const std::int64_t most = gpus_of(scenario.cluster);
  while (open.gpus < most) {
    open.gpus = std::min(open.gpus * 2, most);
    if (const auto run = best_of(scenario, open)) {
      return fmt::format("on {} {}", gpus_text(open.gpus), fits_text(*run));
    }
    std::string fits = fits_with_software(named, open, named.stack_is_default);
    if (!fits.empty()) return fmt::format("on {} {}", gpus_text(open.gpus), fits);
  }
  return fmt::format(
      "no plan fits even on all {} of {}: use GPUs with more memory or a shorter --seq{}",
      gpus_text(most), scenario.cluster.name, batch_matters ? ", or a smaller --global-batch" : "");
}

// Returns a legal plan of the search space on `gpus` GPUs, if there is one. Settings that do not
// affect legality are fixed to one value to save time, unless the launcher's rules may refuse that
// value.
std::optional<Plan> legal_plan(const Scenario& scenario, SearchSpace space, std::int64_t gpus) {
  if (gpus < 1 || gpus > gpus_of(scenario.cluster)) return std::nullopt;
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
  if (!found.ok()) return std::nullopt;
  if (!found->plans.empty()) return found->plans.front().plan;
  return found->nearest_miss ? std::optional(found->nearest_miss->plan) : std::nullopt;
}

// Returns a text with the nearest smaller and larger numbers of GPUs that have a legal layout.
std::string nearest_legal_counts(const Scenario& scenario, const SearchSpace& space) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (std::int64_t step = 1; step <= kNeighbourhood && (below == 0 || above == 0); ++step) {
    if (below == 0 && legal_plan(scenario, space, space.gpus - step)) below = space.gpus - step;
    if (above == 0 && legal_plan(scenario, space, space.gpus + step)) above = space.gpus + step;
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
    if (!legal_plan(other, space, space.gpus)) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

// Returns why `legal`, a plan without the stated values of the option, is not legal with them.
// Empty for degrees, whose values depend on each other, and for options that are not settings.
std::string reason_beside(const Scenario& scenario, const SearchSpace& space, const Plan& legal,
                          const std::string& option) {
  constexpr std::array kDegrees = {Setting::kTp, Setting::kPp, Setting::kDp, Setting::kCp};
  for (const SettingRow& row : setting_rows()) {
    const bool is_degree =
        std::find(kDegrees.begin(), kDegrees.end(), row.setting) != kDegrees.end();
    if (is_degree || option_of(row.setting) != option) continue;
    SearchSpace near = space_around(legal);
    for (const SettingRow& own : setting_rows()) {
      const bool is_one_value = own.kind != FieldKind::kList && own.counts_for == nullptr;
      if (is_one_value) near.asked[own.setting] = {setting_of(legal, own.setting).value};
    }
    near.asked[row.setting] = space.asked[row.setting];
    const Result<SearchResult> found = limited_search(scenario, near);
    if (!found.ok()) break;
    if (row.setting == Setting::kSchedule && legal.degrees.pp == 1 && found->pruned.empty()) {
      return "a pipeline schedule needs more than one stage (the legal layouts have pp 1)";
    }
    return deciding_reason(scenario, near, *found);
  }
  return "";
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
  std::string reason = deciding_reason(scenario, space, found);
  std::vector<std::string> conflicting;
  std::optional<Plan> legal;  // without the last of the conflicting options
  for (const Relaxation& without : relaxations(space)) {
    std::optional<Plan> plan = legal_plan(scenario, without.space, space.gpus);
    if (!plan) continue;
    conflicting.insert(conflicting.begin(), without.option);
    legal = std::move(plan);
  }
  if (conflicting.size() == 1) {
    std::string own = reason_beside(scenario, space, *legal, conflicting.front());
    if (!own.empty()) reason = std::move(own);
  }
  if (!conflicting.empty()) return conflict(scenario, space, conflicting, reason);
  SearchSpace other = space;
  bool has_batch = false;
  const std::int64_t whole = (space.global_batch + space.gpus - 1) / space.gpus * space.gpus;
  for (const std::int64_t batch : {divisible_batch(space.global_batch, space.gpus), whole}) {
    if (has_batch || batch == space.global_batch) continue;
    other.global_batch = batch;
    has_batch = legal_plan(scenario, other, space.gpus).has_value();
  }
  if (has_batch) reason = batch_reason(scenario, space);
  std::vector<std::string> remedies;
  if (std::string counts = nearest_legal_counts(scenario, space); !counts.empty()) {
    remedies.push_back(std::move(counts));
  }
  if (has_batch) remedies.push_back(fmt::format("write --global-batch {}", other.global_batch));
  return bad_input(
      fmt::format("no layout uses {} with {} and global batch {}{}{}", gpus_text(space.gpus),
                  scenario.model.name, space.global_batch, reason.empty() ? "" : ": ", reason),
      "--gpus", fmt::format("{}", fmt::join(remedies, ", or ")));
}

Error does_not_fit(const NamedScenario& named, const PlannedRun& run, double most_chance) {
  SearchSpace space = space_around(run.plan);
  space.oom_risk = std::min(space.oom_risk, most_chance);
  const auto other = best_of(named.scenario, space);
  const std::string fits =
      other ? fmt::format("on the same {} {}", gpus_text(space.gpus), fits_text(*other))
            : remedy(named, space, run.plan.micro_batch > 1);
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

Status check_fit(const AcceptedRisk& accepted, const NamedScenario& named, const PlannedRun& run) {
  const double most = accepted.max_oom.value_or(kRefusedChance);
  if (fits_in_memory(run.predicted, most) || accepted.allow_oom) return Ok{};
  return does_not_fit(named, run, most);
}

Status check_stated_risk(const AcceptedRisk& accepted, const std::string& name,
                         const Prediction& predicted) {
  if (!accepted.max_oom || fits_in_memory(predicted, *accepted.max_oom)) return Ok{};
  return Error{
      ErrorKind::kDoesNotFit,
      fmt::format("{} does not fit: it {}", name, misfit_text(predicted, *accepted.max_oom)), "",
      "a larger --max-oom accepts the plan"};
}

Error nothing_fits(const NamedScenario& named, const SearchSpace& space,
                   const SearchResult& found) {
  const Scenario& scenario = named.scenario;
  if (!found.is_complete()) {
    return Error{
        ErrorKind::kDoesNotFit,
        fmt::format("no plan was found in the time of --within, which was enough for {:.0f} % "
                    "of the search",
                    100 * found.visited),
        "", "give more time"};
  }
  if (!found.nearest_miss) return nothing_legal(scenario, space, found);
  const PlannedRun& miss = *found.nearest_miss;
  return Error{ErrorKind::kDoesNotFit,
               fmt::format("no plan of {} fits on {}: the closest plan, {}, {}",
                           scenario.model.name, gpus_text(space.gpus), short_name(miss.plan),
                           shortage_text(miss.predicted, memory_limit(scenario, space))),
               "", remedy(named, space, miss.plan.micro_batch > 1)};
}

}  // namespace tpsim::app
