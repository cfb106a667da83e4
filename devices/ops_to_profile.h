// Finds the profile entries that a set of plans needs: their distinct ops and collectives, from
// traces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/plan/plan.h"
#include "core/program/op_times.h"
#include "core/scenario/scenario.h"

namespace tpsim::app {

// Returns each op and collective key once, with its number of occurrences in shortened steps and
// with zero times. A shortened step has one block per stage and as many micro-batches as fill the
// pipeline.
StepTimes ops_to_profile(const ModelSpec& model, const TrainingOptions& options,
                         const std::vector<Plan>& plans);

// Returns the plan reduced to the settings that determine its ops and collectives: one block per
// stage, and few micro-batches. Plans with equal results need the same profile entries.
Plan shortened(const Plan& plan);
// Returns the model for a shortened plan.
ModelSpec shortened(const ModelSpec& model, const Plan& shortened_plan);

// Returns ranks that together run all distinct programs of a plan: the first and last rank of a
// tensor group, and the first, middle and last stage. Includes all context-parallel ranks, and all
// data-parallel ranks with different optimizer shards, or a sample of 16 shards if there are more.
std::vector<std::int64_t> distinct_ranks(const Plan& plan);

struct TimedPlan {
  ModelSpec model;
  Plan plan;
};

// Returns shortened steps, one per distinct plan, in which every op can be timed in its usual
// order. Reduces layers until the step fits, and uses at most 2 x pp micro-batches. Plans of which
// a single layer per stage does not fit are omitted.
std::vector<TimedPlan> plans_to_time(const ModelSpec& model, const std::vector<Plan>& plans,
                                     const std::function<bool(const TimedPlan&)>& fits);

}  // namespace tpsim::app
