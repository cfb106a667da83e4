#include "app/answers/explain_answers.h"

#include "app/scenario/fitting_search.h"
#include "app/scenario/open_inputs.h"
#include "app/scenario/untried_parts.h"
#include "core/base/text.h"

namespace tpsim::app {
namespace {

constexpr double kMostMemory = 2;  // largest memory to search with, relative to the GPU's memory

// Returns the plan that a request names, or the best one of its search, without widened interval.
Result<SimulatedPlan> chosen_plan(const ExplainRequest& request) {
  if (!request.search || request.scenario.file) {
    return predicted_plan({request.scenario, request.settings});
  }
  SimulatedPlan chosen;
  TPSIM_TRY(chosen.named, load_scenario(request.scenario, *request.search));
  const SearchRequest& asked = *request.search;
  chosen.named.settings_left = settings_left(asked, false);
  TPSIM_TRY(const SearchSpace space, search_space(asked, chosen.named.scenario, std::nullopt));
  const auto find = [&](const Scenario& scenario, const Progress& progress) {
    return search(scenario, space, 1, progress, asked.threads);
  };
  TPSIM_TRY(const SearchResult found, search_until_fit(chosen.named, space, asked.progress, find));
  if (found.plans.empty()) return nothing_fits(chosen.named, space, found);
  chosen.run = found.plans.front();
  return chosen;
}

Status search_break_evens(const ExplainRequest& request, const Progress& progress,
                          WhatIfAnswer& answer) {
  constexpr double kMemorySearchShare = 0.2;  // share of this search in the progress
  const std::optional<PlanFile>& file = request.scenario.file;
  const int threads = request.search->threads;
  const auto show = [&](double share) {
    if (progress) progress(share);
  };
  Scenario scenario = answer.named.scenario;
  TPSIM_TRY(const SearchSpace space, search_space(*request.search, scenario, file));
  std::optional<Plan> today = answer.run.plan;
  if (file) {  // the plan of a file may not be the best one
    TPSIM_TRY(const SearchResult found, search(scenario, space, 1, {}, threads));
    scenario = with_found_parts(std::move(scenario), found);
    today.reset();
    if (!found.plans.empty()) today = found.plans.front().plan;
    if (today && *today != answer.run.plan) answer.best = short_name(*today);
  }
  TPSIM_TRY(answer.memory,
            memory_break_evens(scenario, space, kMostMemory, threads,
                               [&](double share) { show(kMemorySearchShare * share); }));
  TPSIM_TRY(answer.plans,
            plan_break_evens(
                scenario, space, threads,
                [&](double share) { show(kMemorySearchShare + (1 - kMemorySearchShare) * share); },
                today));
  return Ok{};
}

}  // namespace

Result<SimulatedPlan> explain_answer(const ExplainRequest& request) {
  TPSIM_TRY(SimulatedPlan chosen, chosen_plan(request));
  TPSIM_TRY_STATUS(widen_intervals(chosen.named, std::span(&chosen.run, 1)));
  return chosen;
}

Result<WhyNotAnswer> why_not_answer(const ExplainRequest& request) {
  WhyNotAnswer answer;
  const SearchRequest& asked = *request.search;
  TPSIM_TRY(answer.named, load_scenario(request.scenario, asked));
  answer.named.settings_left = settings_left(asked, request.scenario.file.has_value());
  const Scenario& scenario = answer.named.scenario;
  TPSIM_TRY(answer.space, search_space(asked, scenario, request.scenario.file));
  TPSIM_TRY(answer.why_not, why_not(with_faster_parts(answer.named, answer.space), answer.space,
                                    request.why_not, asked.threads, asked.progress));
  adopt_parts(answer.why_not.tried, answer.named);
  return answer;
}

Result<WhatIfAnswer> what_if_answer(const ExplainRequest& request,
                                    const Progress& break_even_progress) {
  WhatIfAnswer answer;
  TPSIM_TRY(SimulatedPlan chosen, chosen_plan(request));
  answer.named = std::move(chosen.named);
  answer.run = std::move(chosen.run);
  const Scenario& scenario = answer.named.scenario;
  answer.sensitivities = sensitivities(scenario, answer.run.plan);
  answer.shapes = shape_findings(scenario, answer.run.plan);
  answer.precisions = precision_break_evens(scenario, answer.run.plan);
  if (!request.search) return answer;
  const Status found = search_break_evens(request, break_even_progress, answer);
  // A plan file may have a number of GPUs that a search rejects. The other questions are still
  // answered.
  if (!found.ok() && !request.scenario.file) return found.error();
  answer.searched = found.ok();
  if (!found.ok()) answer.not_searched = found.error().message;
  return answer;
}

}  // namespace tpsim::app
