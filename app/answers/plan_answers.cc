#include "app/answers/plan_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "app/scenario/allocated.h"
#include "app/scenario/fitting_search.h"
#include "app/scenario/open_inputs.h"
#include "app/scenario/untried_parts.h"
#include "plans/search/staged_search.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

// Finds the plans of the picture too: the best ones, the front, and a few of each other tensor
// parallel degree.
Result<SearchResult> find_drawn(const PlanRequest& request, const Progress& progress,
                                StagedSearch& search, PlanAnswer& answer) {
  constexpr int kPlansOfDegree = 5;
  const auto half = [&](double begin) -> Progress {
    if (!progress) return {};
    return [&progress, begin](double share) { progress(begin + share / 2); };
  };
  TPSIM_TRY(SearchResult best, search.best(half(0)));
  TPSIM_TRY(SearchResult front, search.front(half(0.5)));
  std::vector<PlannedRun>& drawn = answer.drawn;
  drawn = best.plans;
  answer.possible = best.feasible + best.not_as_good;
  drawn.insert(drawn.end(), front.plans.begin(), front.plans.end());
  for (const std::int64_t tp : search.tp_degrees()) {
    const bool is_drawn = std::any_of(drawn.begin(), drawn.end(), [&](const PlannedRun& run) {
      return run.plan.degrees.tp == tp;
    });
    if (is_drawn) continue;
    TPSIM_TRY(const SearchResult more, search.best_of_tp(tp, kPlansOfDegree, {}));
    drawn.insert(drawn.end(), more.plans.begin(), more.plans.end());
  }
  if (request.is_front) front.tried = std::move(best.tried);
  return std::move(request.is_front ? front : best);
}

// All sizes have the same stack, so that they can be compared.
ScalingSize best_of(NamedScenario named, const SearchSpace& space, int threads,
                    const Progress& progress) {
  ScalingSize size{space.gpus, space.global_batch, {}, ""};
  named.stack_is_default = false;
  const Result<SearchResult> found = search_until_fit(
      named, space, progress, [&](const Scenario& scenario, const Progress& hears) {
        return search(scenario, space, 1, hears, threads);
      });
  if (!found.ok()) {
    size.why_none = found.error().message;
  } else if (found->plans.empty()) {
    size.why_none = fmt::format("no plan with --stack {} {}", named.stack,
                                found->feasible > 0 ? "is legal" : "fits or is legal");
  } else {
    size.best = found->plans.front();
    if (!found->tried.empty()) size.parts = found->tried.front().parts;
  }
  return size;
}

// On nodes that differ, predicts the plans again with their ranks where they are fastest.
Status arrange_found(PlanAnswer& answer, bool is_front) {
  NamedScenario& named = answer.named;
  if (named.scenario.cluster.unequal_nodes.empty()) return Ok{};
  for (std::vector<PlannedRun>* const runs : {&answer.found.plans, &answer.drawn}) {
    for (PlannedRun& run : *runs) {
      TPSIM_TRY_STATUS(arrange_ranks(named, run.plan));
      TPSIM_TRY(run.predicted, simulate(named.scenario, run.plan));
    }
  }
  std::vector<PlannedRun>& plans = answer.found.plans;
  if (answer.space.objective == Objective::kTime && !is_front) {
    std::stable_sort(plans.begin(), plans.end(), [](const PlannedRun& a, const PlannedRun& b) {
      return a.predicted.step < b.predicted.step;
    });
  }
  if (!plans.empty()) named.equal_nodes = on_equal_nodes(named.scenario, plans.front().plan);
  return Ok{};
}

}  // namespace

double gpu_hours_per_billion_tokens(const PlannedRun& run) {
  return static_cast<double>(gpu_count(run.plan)) * 1e9 / run.predicted.tokens_per_s / 3600;
}

Result<PlanAnswer> plan_answer(const PlanRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  PlanAnswer answer;
  const ScenarioRequest& inputs = request.scenario;
  TPSIM_TRY(answer.named, load_scenario(inputs, request.search));
  NamedScenario& named = answer.named;
  named.settings_left = settings_left(request.search, inputs.file.has_value());
  SearchRequest asked = request.search;
  if (asked.gpus == 0 && !inputs.file) asked.gpus = allocated_gpus(named);
  TPSIM_TRY(answer.space, search_space(asked, named.scenario, inputs.file));
  answer.space.group = request.is_front ? Grouping::kNone : request.group;
  const int threads = request.search.threads;
  std::optional<StagedSearch> search;  // of the software that was tried last
  const auto find = [&](const Scenario& scenario,
                        const Progress& progress) -> Result<SearchResult> {
    search.emplace(scenario, answer.space, request.top, threads);
    if (request.is_drawn) return find_drawn(request, progress, *search, answer);
    return request.is_front ? search->front(progress) : search->best(progress);
  };
  TPSIM_TRY(answer.found, search_until_fit(named, answer.space, request.search.progress, find));
  if (request.search.progress) request.search.progress(1);  // searches often stop early
  TPSIM_TRY_STATUS(arrange_found(answer, request.is_front));
  if (!answer.found.plans.empty() && answer.space.objective == Objective::kTime &&
      answer.found.is_complete()) {
    const PlannedRun& best = answer.found.plans.front();
    named.untried = untried_parts(named, best, answer.space.oom_risk);
    TPSIM_TRY(named.other_batch, search->faster_batch(best.predicted.tokens_per_s));
  }
  TPSIM_TRY(OpenInputs open, open_inputs(named));
  named.assumed = open.widen(answer.found.plans, threads);
  const bool ranks_time = answer.space.objective == Objective::kTime && !request.is_front;
  if (ranks_time && answer.found.plans.size() > 1) {
    named.risk = choice_risk(answer.found.plans, named.assumed);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  answer.found.elapsed = Seconds(elapsed.count());  // of all searches, predictions included
  // The picture shows the interval of the best plan.
  if (!answer.drawn.empty()) open.widen(answer.drawn.front());
  return answer;
}

Result<SimulatedPlan> predicted_plan(const SimulateRequest& request) {
  SimulatedPlan answer;
  const std::optional<PlanFile>& file = request.scenario.file;
  TPSIM_TRY(answer.named, load_scenario(request.scenario, request.settings));
  answer.named.settings_left = settings_left(request.settings, file.has_value());
  const Scenario& scenario = answer.named.scenario;
  TPSIM_TRY(answer.run.plan,
            single_plan(request.settings, scenario.model, file, plan_defaults(scenario)));
  TPSIM_TRY_STATUS(arrange_ranks(answer.named, answer.run.plan));
  TPSIM_TRY(answer.run.predicted, simulate(scenario, answer.run.plan));
  answer.named.equal_nodes = on_equal_nodes(scenario, answer.run.plan);
  return answer;
}

Result<SimulatedPlan> simulate_answer(const SimulateRequest& request) {
  TPSIM_TRY(SimulatedPlan answer, predicted_plan(request));
  TPSIM_TRY_STATUS(widen_intervals(answer.named, std::span(&answer.run, 1)));
  return answer;
}

const ScalingSize* ScalingAnswer::baseline() const {
  const auto first = std::find_if(sizes.begin(), sizes.end(),
                                  [](const ScalingSize& size) { return size.best.has_value(); });
  return first == sizes.end() ? nullptr : &*first;
}

namespace {

// Checks that the batch of the first size is a whole number of sequences on every other size.
Status check_weak_batch(const std::vector<std::int64_t>& sizes, std::int64_t batch) {
  std::int64_t common = 0;
  for (const std::int64_t gpus : sizes) common = std::gcd(common, gpus);
  const std::int64_t unit = sizes.front() / common, above = (batch + unit - 1) / unit * unit;
  if (above == batch) return Ok{};
  return bad_input(
      fmt::format("{} sequences on {} GPUs do not scale to whole batches on the other numbers",
                  batch, sizes.front()),
      "--global-batch", fmt::format("write {}", above));
}

}  // namespace

Result<ScalingAnswer> scaling_answer(const ScalingRequest& request) {
  ScalingAnswer answer;
  SearchRequest first = request.search;
  first.gpus = *std::max_element(request.gpus.begin(), request.gpus.end());
  TPSIM_TRY(answer.named, load_scenario(request.scenario, first));
  first.gpus = request.gpus.front();
  TPSIM_TRY(SearchSpace space, search_space(first, answer.named.scenario, request.scenario.file));
  if (request.is_weak) TPSIM_TRY_STATUS(check_weak_batch(request.gpus, space.global_batch));
  const std::int64_t batch = space.global_batch;
  for (const std::int64_t gpus : request.gpus) {
    space.gpus = gpus;
    if (request.is_weak) space.global_batch = batch * gpus / request.gpus.front();
    const auto done = static_cast<double>(answer.sizes.size());
    const Progress show = [&](double share) {
      if (!request.search.progress) return;
      request.search.progress((done + share) / static_cast<double>(request.gpus.size()));
    };
    answer.sizes.push_back(best_of(answer.named, space, request.search.threads, show));
  }
  return answer;
}

}  // namespace tpsim::app
