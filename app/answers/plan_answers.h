// The best plans of a search, the prediction of one plan, and the best plan of several numbers of
// GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/scenario/fit.h"
#include "app/scenario/plan_request.h"
#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/plan/report.h"

namespace tpsim::app {

struct PlanRequest {
  ScenarioRequest scenario = {};
  SearchRequest search = {};
  int top = 10;  // number of layouts or plans
  Grouping group = Grouping::kLayout;
  bool is_front = false;  // the complete Pareto front of step time and memory instead
  bool is_drawn = false;  // also find the plans of a picture
};

struct PlanAnswer {
  NamedScenario named;
  SearchSpace space;
  SearchResult found;  // has no plans if none fits: nothing_fits() is the error
  // Plans of the picture: the best plans, the Pareto front, and the fastest of each tensor parallel
  // degree.
  std::vector<PlannedRun> drawn;
  std::int64_t possible = 0;  // combinations that may fit in memory
};
Result<PlanAnswer> plan_answer(const PlanRequest& request);

struct SimulateRequest {
  ScenarioRequest scenario = {};
  StatedSettings settings = {};
};

// Prediction of one plan, with the scenario it was predicted for.
struct SimulatedPlan {
  NamedScenario named;
  PlannedRun run;
};
Result<SimulatedPlan> simulate_answer(const SimulateRequest& request);
// The same without the effect of unstated inputs on the interval.
Result<SimulatedPlan> predicted_plan(const SimulateRequest& request);

double gpu_hours_per_billion_tokens(const PlannedRun& run);

struct ScalingRequest {
  ScenarioRequest scenario = {};
  SearchRequest search = {};  // without a number of GPUs
  std::vector<std::int64_t> gpus = {};
  bool is_weak = false;  // the batch grows with the number of GPUs
};

struct ScalingSize {
  std::int64_t gpus = 0;
  std::int64_t global_batch = 0;
  std::optional<PlannedRun> best;  // absent if no plan fits in memory
  std::string why_none;
  // Best values of the searched software options for this number of GPUs.
  PartValues parts = {};

  // Returns the tokens per second and GPU of the best plan.
  double rate() const { return best->predicted.tokens_per_s / static_cast<double>(gpus); }
};

struct ScalingAnswer {
  NamedScenario named;
  std::vector<ScalingSize> sizes;

  // Returns the first size that has a plan, which is the baseline for scaling efficiency; null if
  // there is none.
  const ScalingSize* baseline() const;
};
Result<ScalingAnswer> scaling_answer(const ScalingRequest& request);

}  // namespace tpsim::app
