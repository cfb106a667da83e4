// Predictions from cached layers: what simulate() does for one plan and the search for many.
#pragma once

#include "core/base/result.h"
#include "core/plan/report.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// What the host of a node holds, where every rank on it holds as much as this one.
Bytes host_memory_of_node(const ClusterSpec& cluster, const Plan& plan, Bytes of_rank);

// Legal for the model, the cluster and the stack?
Status check_plan(const Scenario& scenario, const Plan& plan);

// The plan must have passed check_plan. Fails at prices by which a step may take longer than event
// time counts, and for more tasks than the scenario's limits allow.
Result<Prediction> predict(LayerPricer& pricer, const Plan& plan);

// Whether a step is short enough for event time, with room for sums, where all that any rank does
// in it takes `one_by_one`, one thing after another.
bool is_countable(const StackSpec& stack, Seconds one_by_one);
Error step_too_long(const Scenario& scenario);

// That a peak of this size does not fit: the prediction of memory is off by a normal error of
// relative size stack.memory.spread.
double probability_of_oom(const Scenario& scenario, Bytes peak);
// The peak that runs out of memory with probability `risk`, in (0, 1).
Bytes peak_at_risk(const Scenario& scenario, double risk);

}  // namespace tpsim
