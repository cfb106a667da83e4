// Fills the requests of predictions and searches from options.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/answers/plan_answers.h"
#include "cli/options/inputs.h"
#include "cli/options/options.h"
#include "core/base/result.h"

namespace tpsim::cli {

Result<PlanRequest> plan_request(const Arguments& arguments, const std::optional<PlanFile>& file);
Result<SimulateRequest> simulate_request(const Arguments& arguments,
                                         const std::optional<PlanFile>& file);
// The search of `plan` with several numbers of GPUs.
Result<ScalingRequest> scaling_request(const Arguments& arguments,
                                       const std::optional<PlanFile>& file);

// Whether --gpus lists several numbers.
bool is_scaling_curve(const Arguments& arguments);
// Parses --gpus "64,128,...,4096". The values before the dots are continued up to the value after
// them, by a constant factor if there is one, and otherwise by a constant step.
Result<std::vector<std::int64_t>> gpu_counts(const Arguments& arguments);

}  // namespace tpsim::cli
