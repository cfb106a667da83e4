#include "core/software/cpu_optimizers.h"

#include <array>
#include <cmath>

namespace tpsim {
namespace {

// In the order of CpuOptimizer.
constexpr std::array<CpuOptimizerRow, 4> kRows = {{
    // A fused kernel with OpenMP threads (deepspeed/ops/adam/cpu_adam.py).
    {.title = "DeepSpeedCPUAdam", .speed = 0.30, .spread = 0.4},
    // PyTorch's fused AdamW, one optimizer per parameter
    // (megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py).
    {.title = "Megatron's HybridDeviceOptimizer", .speed = 0.33, .spread = 0.7},
    // PyTorch selects neither its fused nor its foreach AdamW for parameters on a CPU: a loop over
    // parameters with separate ops (torch/optim/optimizer.py). The speed is the geometric mean of
    // the one measured loop, 0.0013, and of ops with Megatron's threads that move 80 instead of 28
    // bytes a parameter, 0.12.
    {.title = "PyTorch's loop over parameters", .speed = 0.0125, .spread = 1.4},
    // One multi-tensor kernel with threads bound to each rank's cores.
    {.title = "a native multi-tensor kernel",
     .speed = 1.2,
     .spread = 0.2,
     .narrow_gradients = true,
     .overlaps_backward = true},
}};

// Standard deviation of log(memory bandwidth of a host) over the clusters of the catalogue that
// state one, for equal numbers of GPUs per host.
constexpr double kUnknownHostSpread = 0.43;

}  // namespace

const CpuOptimizerRow& row_of(CpuOptimizer kind) { return kRows[static_cast<std::size_t>(kind)]; }

double offload_spread(CpuOptimizer kind, const HostSpec& host) {
  const bool is_stated = host.source != HostSpec{}.source;
  return std::hypot(row_of(kind).spread, is_stated ? 0 : kUnknownHostSpread);
}

}  // namespace tpsim
