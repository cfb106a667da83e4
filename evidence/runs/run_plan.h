// From a row of a run table to a plan and the parts of software that it states. An error says why
// the row cannot be modelled.
#pragma once

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"
#include "evidence/runs/run_environment.h"
#include "evidence/runs/run_table.h"

namespace tpsim {

// An error for a row that lacks a size or a degree.
Status check_stated(const PublishedRun& run);

// The parts that the row states.
Result<PartValues> parts_of(const PublishedRun& run, const StackSpec& stack);
// These, and how DeepSpeed's engine syncs where neither says. See StackSpec::deepspeed_engine.
Result<PartValues> with_engine(const PublishedRun& run, const RunEnvironment& environment,
                               const StackSpec& stack, PartValues parts);

// The row's plan. An error says why it cannot be modelled.
Result<Plan> plan_of(const PublishedRun& run, const RunEnvironment& environment,
                     const StackSpec& stack);

}  // namespace tpsim
