// Attention by Hopper's warpgroups: kernels for sm_90a alone, in builds that have such a GPU among
// theirs.
#pragma once

#include <cstddef>

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/flash_memory.h"
#include "kernels/ops.h"

namespace tpsim {

// Whether this build has them.
bool has_warpgroup_kernels();

// Both for what tensor cores take, on a GPU of sm_90a.
void flash_forward_by_warpgroups(const FlashForward& op, const CudaState& state);
// Of more than 64 columns; `scratch` as flash_backward_memory() lays it out, with o . d_o there and
// the counters cleared.
void flash_backward_by_warpgroups(const FlashBackward& op, const FlashMemory& memory,
                                  std::byte* scratch, const CudaState& state);

}  // namespace tpsim
