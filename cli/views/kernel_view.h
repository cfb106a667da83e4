// Kernel times of a profiler trace as text.
#pragma once

#include <string>
#include <vector>

#include "app/answers/log_answer.h"
#include "cli/options/terminal.h"

namespace tpsim::cli {

std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<app::KernelRow>& rows);

}  // namespace tpsim::cli
