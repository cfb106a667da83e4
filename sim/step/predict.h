// Predictions from cached layers: used by simulate() for one plan and by the search for many.
#pragma once

#include "core/base/result.h"
#include "core/plan/report.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Host memory of a node if all its ranks use `of_rank`.
Bytes host_memory_of_node(const ClusterSpec& cluster, const Plan& plan, Bytes of_rank);

// Checks that the plan is legal for model, cluster and stack.
Status check_plan(const Scenario& scenario, const Plan& plan);

// The plan must have passed check_plan(). Error if the step may exceed the range of event time, or
// if there are more tasks than the scenario's limits allow.
Result<Prediction> predict(LayerPricer& pricer, const Plan& plan);

// Whether a step fits event time, with room for sums. `one_by_one`: total time of all work of any
// rank.
bool is_countable(const StackSpec& stack, Seconds one_by_one);
Error step_too_long(const Scenario& scenario);

// Probability that this peak does not fit. The error of predicted memory is normal with relative
// standard deviation stack.memory.spread.
double probability_of_oom(const Scenario& scenario, Bytes peak);
// The peak that runs out of memory with probability `risk`, in (0, 1).
Bytes peak_at_risk(const Scenario& scenario, double risk);

}  // namespace tpsim
