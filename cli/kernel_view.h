// Kernels of a trace beside the terms of a plan that they belong to.
#pragma once

#include <string>
#include <vector>

#include "cli/log_causes.h"
#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/plan.h"
#include "core/report.h"
#include "stacks/kernel_trace.h"

namespace tpsim::cli {

struct KernelRow {
  std::string what;
  Seconds measured, predicted;  // of a step
  CauseClass explained_by;      // what to look for where it takes longer
};
// The parts of a step: they add up to it but for what runs side by side.
std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& predicted);

// What takes longest over its prediction.
const KernelRow& largest_excess(const std::vector<KernelRow>& rows);

std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<KernelRow>& rows);
JsonValue kernel_json(const KernelTimes& kernels, const std::vector<KernelRow>& rows);

}  // namespace tpsim::cli
