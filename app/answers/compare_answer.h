// Several plans, predicted for comparison.
#pragma once

#include <string>
#include <vector>

#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/plan/report.h"

namespace tpsim::app {

struct ComparedPlan {
  std::string file;  // path of the plan file
  NamedScenario named;
  PlannedRun run;
  // Probability that the plan is faster than the first one, and whether both are too close to rank.
  // Valid if shares_errors().
  double faster = 0;
  bool is_tie = false;

  double tokens_per_s_per_gpu() const;
};

// A fact that differs between the plans, with one text for each plan.
struct PlanDifference {
  std::string name;
  std::vector<std::string> values;
};

struct CompareAnswer {
  std::vector<ComparedPlan> plans;
  std::vector<PlanDifference> differences;
  // Whether the plans have the same model, batch and machine. Their prediction errors are then
  // largely the same, so that the probability of their order can be computed (sim/step/order.h).
  bool shares_errors = false;
};

inline constexpr std::size_t kMostComparedPlans = 12;

// Each request has a plan file, whose path is `origin`. Error unless there are two to
// kMostComparedPlans.
Result<CompareAnswer> compare_answer(const std::vector<ScenarioRequest>& requests);

}  // namespace tpsim::app
