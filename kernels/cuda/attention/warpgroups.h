// Flash attention with Hopper warpgroups (wgmma): kernels for sm_90a only, in builds whose list of
// GPUs contains sm_90a.
#pragma once

#include <cstddef>

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/flash_memory.h"
#include "kernels/ops.h"

namespace tpsim {

// Whether this build has the kernels.
bool has_warpgroup_kernels();

// Both require a GPU of sm_90a and an op that suits_tensor_cores().
void flash_forward_by_warpgroups(const FlashForward& op, const CudaState& state);
// Requires head_dim > 64. `scratch` has the layout of flash_backward_memory(), with o . d_o
// computed and the counters cleared.
void flash_backward_by_warpgroups(const FlashBackward& op, const FlashMemory& memory,
                                  std::byte* scratch, const CudaState& state);

}  // namespace tpsim
