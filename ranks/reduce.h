// Reductions over the ranks' copies of an array in host memory.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "ranks/communicator.h"

namespace tpsim {

// destination[i] = op over r of sources[r][i], for elements [first, first + count). The
// destinations may be the sources. Sums are accumulated in fp32 in the order of the sources and
// rounded once at the end. Therefore the result does not depend on how the array is divided into
// pieces.
struct ReducePiece {
  DType dtype{};
  ReduceOp op{};
  std::int64_t first = 0;
  std::int64_t count = 0;
};
void reduce(const ReducePiece& piece, std::span<const void* const> sources,
            std::span<void* const> destinations);

}  // namespace tpsim
