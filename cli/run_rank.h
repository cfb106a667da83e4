// tpsim run --rank: one rank of a plan, alone.
#pragma once

#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "reference_model/training.h"

namespace tpsim::cli {

// Runs the program of the rank that --rank names, with collectives that wait as long as the
// scenario's model says, and reports where its time and memory went.
Status run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                      const NamedScenario& planned, const TrainingRun& run,
                      const TokenSource& tokens);

}  // namespace tpsim::cli
