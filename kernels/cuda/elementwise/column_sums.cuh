// Second stage of column sums: adds the partial sums of row ranges.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {

// into[c] += sum over p of partial[p][c], in double and in the order of p within each strand. The
// order depends on the sizes only. `stride`: elements between pieces.
struct PartialSums {
  const float* partial = nullptr;
  std::int64_t pieces = 0, stride = 0, cols = 0;
};
void add_partial_sums(const PartialSums& sums, const AnyFloats& into, const CudaState& state);

}  // namespace tpsim
