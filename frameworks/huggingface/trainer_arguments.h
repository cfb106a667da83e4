// Arguments of a training script with Hugging Face's Trainer.
#pragma once

#include "core/scenario/plan_file.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/launch_options.h"

namespace tpsim {

// Returns the arguments that state the plan. `parts` is the plan's software. `checkpoints`: the
// Trainer, and not FSDP's settings, enables full recompute.
LaunchOptions trainer_arguments(const PlanFile& file, const SoftwareParts& parts, bool checkpoints);

}  // namespace tpsim
