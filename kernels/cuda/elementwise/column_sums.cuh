// Second stage of column sums: adds the partial sums of row ranges.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {

// into[c] += sum over p of partial[p][c], accumulated in double. Each threadIdx.y sums a fixed
// subset of p in order, so that the result depends on the sizes only. `stride`: elements between
// consecutive pieces.
struct PartialSums {
  const float* partial = nullptr;
  std::int64_t pieces = 0, stride = 0, cols = 0;
};
void add_partial_sums(const PartialSums& sums, const AnyFloats& into, const CudaState& state);

}  // namespace tpsim
