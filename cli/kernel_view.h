// Why a step took as long as it took: kernels of a trace beside the terms of a plan that they
// belong to, and what else would explain it.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/plan.h"
#include "core/report.h"
#include "core/result.h"
#include "core/scenario.h"
#include "stacks/kernel_trace.h"

namespace tpsim::cli {

// What would make a step take as long as it took: the prediction with one thing changed at a time.
struct LikelyCause {
  std::string what;  // "norm_kernel=torch", "links between nodes at a half"
  Seconds step;      // predicted with it
};

// What a cause acts on, as far as a log can tell it apart.
enum class CauseClass { kAny, kCompute, kLinks, kHost };

// Those that move the prediction towards `measured` by a tenth of the gap at least, nearest first,
// at most `most` of them, of one class unless it is kAny. Each is tried alone.
Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const Plan& plan,
                                               Seconds predicted, Seconds measured,
                                               CauseClass acts_on, std::size_t most);

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
