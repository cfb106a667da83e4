// Prediction of one plan with a LayerPricer, which caches layers between the plans of a search.
#pragma once

#include "core/base/result.h"
#include "core/plan/report.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Returns the host memory used on a node if each of its ranks uses `of_rank`.
Bytes host_memory_of_node(const ClusterSpec& cluster, const Plan& plan, Bytes of_rank);

// Checks that the plan is legal for model, cluster and stack.
Status check_plan(const Scenario& scenario, const Plan& plan);

// Predicts a plan that has passed check_plan(). Error if the step may exceed the limit of
// is_countable(), or if the plan has more tasks than the scenario's limits allow.
Result<Prediction> predict(LayerPricer& pricer, const Plan& plan);

// Returns whether a step is short enough for times in integer picoseconds: at most 50 days.
// `one_by_one`: total time of all tasks of any rank, one after the other.
bool is_countable(const StackSpec& stack, Seconds one_by_one);
Error step_too_long(const Scenario& scenario);

// Returns the probability that a plan with this predicted peak runs out of memory. The prediction
// error has relative standard deviation stack.memory.spread and heavy tails (core/base/normal.h).
double probability_of_oom(const StackMemory& stack, Bytes capacity, Bytes peak);
double probability_of_oom(const Scenario& scenario, Bytes peak);
// Returns the predicted peak at which this probability is `risk`, in (0, 1).
Bytes peak_at_risk(const Scenario& scenario, double risk);

}  // namespace tpsim
