// Converts a row of a run table to a plan and to the software parts that it states. Errors give the
// reason why the row cannot be modelled.
#pragma once

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"
#include "evidence/runs/run_environment.h"
#include "evidence/runs/run_table.h"

namespace tpsim {

// Returns an error if the row lacks a size or a degree.
Status check_stated(const PublishedRun& run);

// Returns the software parts that the row states.
Result<PartValues> parts_of(const PublishedRun& run, const StackSpec& stack);
// Adds DeepSpeed's gradient synchronization if neither the row nor the environment states it. See
// StackSpec::deepspeed_engine.
Result<PartValues> with_engine(const PublishedRun& run, const RunEnvironment& environment,
                               const StackSpec& stack, PartValues parts);

// Returns the row's plan. Errors give the reason why the row cannot be modeled.
Result<Plan> plan_of(const PublishedRun& run, const RunEnvironment& environment,
                     const StackSpec& stack);

}  // namespace tpsim
