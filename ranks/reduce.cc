#include "ranks/reduce.h"

#include <algorithm>

#include "kernels/cpu/floats.h"

namespace tpsim {
namespace {

constexpr std::int64_t kWindow = 2048;

template <class Combine>
void combine_each(const float* x, std::int64_t count, float* into, Combine combine) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) into[i] = combine(into[i], x[i]);
}

void combine(ReduceOp op, const float* x, std::int64_t count, float* into) {
  if (op == ReduceOp::kSum) {
    combine_each(x, count, into, [](float a, float b) { return a + b; });
  } else {
    combine_each(x, count, into, [](float a, float b) { return std::max(a, b); });
  }
}

const void* address(const void* data, DType dtype, std::int64_t index) {
  return static_cast<const std::byte*>(data) + index * size_of(dtype);
}

}  // namespace

void reduce(const ReducePiece& piece, std::span<const void* const> sources,
            std::span<void* const> destinations) {
  alignas(64) float total[kWindow];
  alignas(64) float widened[kWindow];
  const std::int64_t end = piece.first + piece.count;
  for (std::int64_t first = piece.first; first < end; first += kWindow) {
    const std::int64_t count = std::min(kWindow, end - first);
    load_floats(address(sources[0], piece.dtype, first), piece.dtype, count, total);
    for (const void* source : sources.subspan(1)) {
      const void* from = address(source, piece.dtype, first);
      const float* x = static_cast<const float*>(from);
      if (piece.dtype != DType::kFloat32) {
        load_floats(from, piece.dtype, count, widened);
        x = widened;
      }
      combine(piece.op, x, count, total);
    }
    for (void* destination : destinations) {
      store_floats(total, count, piece.dtype, element_address(destination, piece.dtype, first));
    }
  }
}

}  // namespace tpsim
