// Copies tiles of a head to shared memory in the layout of wgmma, for blocks of two warpgroups.
#pragma once

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/runtime/descriptors.h"
#include "kernels/cuda/tiles/ptx_hopper.cuh"

namespace tpsim {

inline constexpr int kTwoWarpgroups = 256;  // threads of two warpgroups

// Returns the first suitably aligned address in dynamic shared memory. The launch must request
// kPanelAlignment bytes more than the tiles need.
__device__ inline uint4* aligned_tiles(uint4* shared) {
  const unsigned beyond = shared_address(shared) % kPanelAlignment;
  return shared + (beyond > 0 ? (kPanelAlignment - beyond) / 16 : 0);
}

// As fetch_tile() of flash.cuh, in the panel layout.
template <class T, int D, int kTileRows>
__device__ inline void fetch_panels(uint4* tile, const T* head, std::int64_t position_stride,
                                    int first, int rows, int head_dim) {
  constexpr int kChunks = D / kChunk, kStep = kTwoWarpgroups / kChunks;
  static_assert(kTileRows % kStep == 0 && kStep % 8 == 0, "rows that lie alike");
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const bool exists = chunk * kChunk < head_dim;
  const T* from = head + (first + row) * position_stride + chunk * kChunk;
  uint4* const to = tile + panelled(row, chunk, kTileRows);
#pragma unroll
  for (int i = 0; i < kTileRows / kStep; ++i) {
    const bool present = exists && first + row + i * kStep < rows;
    copy_async(to + i * kStep * (kPanelRowBytes / 16), present ? from : head, present);
    from += kStep * position_stride;
  }
}

// Waits until the requested tiles have arrived and are visible to wgmma, and until the block no
// longer reads earlier tiles.
__device__ inline void meet_tiles() {
  wait_for_copies<0>();
  show_to_products();
  __syncthreads();
}

}  // namespace tpsim
