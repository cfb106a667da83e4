// Explanations of a prediction: terms, programs, other settings, and other hardware.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/answers/plan_answers.h"
#include "app/scenario/plan_request.h"
#include "core/base/result.h"
#include "plans/questions/precision_break_even.h"
#include "plans/questions/shape_advice.h"
#include "plans/questions/what_if.h"
#include "plans/questions/why_not.h"

namespace tpsim::app {

// The plan to explain: that of the plan file, that of the settings, or the best plan of a search.
struct ExplainRequest {
  ScenarioRequest scenario = {};
  StatedSettings settings = {};
  std::optional<SearchRequest> search = {};
  // Settings and parts to compare with the best plan. The search starts from the plan file, if
  // there is one.
  Choices why_not = {};
};

// Returns the plan with its prediction.
Result<SimulatedPlan> explain_answer(const ExplainRequest& request);

struct WhyNotAnswer {
  NamedScenario named;
  SearchSpace space;
  WhyNot why_not;
};
// Compares the best plan of the search with the best plan that has the settings of
// `request.why_not`.
Result<WhyNotAnswer> why_not_answer(const ExplainRequest& request);

struct WhatIfAnswer {
  NamedScenario named;
  PlannedRun run;
  std::vector<Sensitivity> sensitivities;
  std::vector<MemoryBreakEven> memory;
  std::vector<PlanBreakEven> plans;
  std::vector<ShapeFinding> shapes;
  std::vector<PrecisionBreakEven> precisions;
  bool searched = false;
  std::string not_searched;  // reason why no search ran
  std::string best;          // best plan of the search, if it is not the explained plan
};
// Returns how the step changes with each machine constant, and advice on model dimensions. With a
// search, also returns the memory, bandwidth and other constants from which on another plan is the
// best. `break_even_progress` is the progress of the search with other hardware.
Result<WhatIfAnswer> what_if_answer(const ExplainRequest& request,
                                    const Progress& break_even_progress);

}  // namespace tpsim::app
