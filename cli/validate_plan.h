// tpsim validate plan.json: a prediction and a run of the same plan on this machine.
#pragma once

#include "cli/options.h"
#include "cli/terminal.h"
#include "core/result.h"

namespace tpsim::cli {

// Predicts at the prices of the profile, trains for some steps on all ranks, and prints both side
// by side: the step, memory by stage, waiting, each kind of op, each collective, and which entries
// of the profile to measure again.
Status validate_plan(const Arguments& arguments, const Terminal& terminal);

}  // namespace tpsim::cli
