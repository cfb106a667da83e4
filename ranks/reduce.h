// Sums and maxima over the ranks' copies of an array in host memory.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "ranks/communicator.h"

namespace tpsim {

// Every destination[i] = op over sources[r][i], for elements [first, first + count) of all arrays,
// which may be the sources. Sums run in the order of the sources and in fp32, with one rounding at
// the end, so the result does not depend on how the elements are split up.
struct ReducePiece {
  DType dtype{};
  ReduceOp op{};
  std::int64_t first = 0;
  std::int64_t count = 0;
};
void reduce(const ReducePiece& piece, std::span<const void* const> sources,
            std::span<void* const> destinations);

}  // namespace tpsim
