// Answers of `calibrate`, and kernel times of a profiler trace, as text.
#pragma once

#include <string>
#include <vector>

#include "app/answers/calibrate_answer.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"

namespace tpsim::cli {

std::string calibration_text(const Terminal& terminal, const Arguments& arguments,
                             const CalibrationAnswer& answer);
std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<KernelRow>& rows);

}  // namespace tpsim::cli
