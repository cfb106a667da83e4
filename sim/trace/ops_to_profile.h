// The profile entries that a set of plans needs: their distinct ops and collectives, found by
// tracing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/program/op_times.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Each key once, with the number of occurrences in shortened steps: one block per model chunk, and
// as many micro-batches as fill the pipeline. Times are zero.
StepTimes ops_to_profile(const ModelSpec& model, const TrainingOptions& options,
                         const std::vector<Plan>& plans);

// Reduces a plan to what determines its ops and collectives: few micro-batches, one block per
// stage. Plans with equal results need the same profile entries.
Plan shortened(const Plan& plan);
// The model for a shortened plan.
ModelSpec shortened(const ModelSpec& model, const Plan& shortened_plan);

// Ranks with different programs: of a tensor group the first and the last, and of the stages the
// ends and one between. Of the data-parallel ranks those with different optimizer shards, or a
// sample if there are very many.
std::vector<std::int64_t> distinct_ranks(const Plan& plan);

// Steps to run so that every op of the plans runs in its usual place, one per distinct plan. Layers
// are reduced until a rank's weights and optimizer state fit `memory`. Micro-batches are at most
// twice those that fill the pipeline. Plans with a single layer that does not fit are omitted.
struct TimedPlan {
  ModelSpec model;
  Plan plan;
};
std::vector<TimedPlan> plans_to_time(const ModelSpec& model, const std::vector<Plan>& plans,
                                     Bytes memory);

}  // namespace tpsim
