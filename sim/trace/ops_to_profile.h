// What a profile must hold for a set of plans: their distinct ops and collectives, found by
// tracing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/program/op_times.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Each key once, with the number of times that it was met (in shortened steps: one block on every
// model chunk, as many micro-batches as fill the pipeline). Times are zero.
StepTimes ops_to_profile(const ModelSpec& model, const TrainingOptions& options,
                         const std::vector<Plan>& plans);

// The plan with all that leaves its ops and collectives the same taken away: few micro-batches, one
// block on every stage. Plans with equal ones need the same entries of a profile.
Plan shortened(const Plan& plan);
// The model that fits it.
ModelSpec shortened(const ModelSpec& model, const Plan& shortened_plan);

// Ranks of a plan whose programs differ: of one tensor group the first and the last; of the
// data-parallel ranks all where shards of the optimizer differ (some of very many); of the stages
// the ends and one between.
std::vector<std::int64_t> distinct_ranks(const Plan& plan);

// Steps to run so that every op of the plans runs where it does in them: one plan for each distinct
// one, with its layers as far as a rank's weights and optimizer state stay within `memory`, and
// with twice the micro-batches that fill its pipeline. Left out: plans whose single layer does not
// fit.
struct TimedPlan {
  ModelSpec model;
  Plan plan;
};
std::vector<TimedPlan> plans_to_time(const ModelSpec& model, const std::vector<Plan>& plans,
                                     Bytes memory);

}  // namespace tpsim
