// tpsim plan --gpus 64,128,...,4096: the best plan of each size, as a curve.
#pragma once

#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "core/result.h"

namespace tpsim::cli {

// Whether --gpus lists several sizes.
bool asks_for_scaling(const Arguments& arguments);

// "64,128,...,4096": what stands before the dots goes on, by the same factor or else by the same
// step, up to what stands behind them.
Result<std::vector<std::int64_t>> gpu_counts(const Arguments& arguments);

// Prints the curve; draws it with --plot. Fails with kDoesNotFit where no size has a plan.
Status run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                   const Terminal& terminal);

}  // namespace tpsim::cli
