// Copies matrices between two memory layouts, 16 bytes at a time if all rows are aligned.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1 << 16;

// Strides in units of T.
template <class T>
struct MatrixRows {
  T* data;
  std::int64_t outer_stride, inner_stride, row_stride;

  __device__ T* row(std::int64_t outer, std::int64_t inner, std::int64_t r) const {
    return data + outer * outer_stride + inner * inner_stride + r * row_stride;
  }
};

// Sizes in units of T. `Index` has 32 bits if that suffices, because 64-bit divisions take longer
// than the copy.
template <class Index>
struct Extents {
  Index inner, rows, units, all;
};

template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    copy_matrices_kernel(const MatrixRows<const T> from, const MatrixRows<T> to,
                         const Extents<Index> n) {
  const Index step = Index{gridDim.x} * kThreads;
  for (Index at = Index{blockIdx.x} * kThreads + threadIdx.x; at < n.all; at += step) {
    const Index row = at / n.units, unit = at % n.units;
    const Index batch = row / n.rows, r = row % n.rows;
    const Index outer = batch / n.inner, inner = batch % n.inner;
    to.row(outer, inner, r)[unit] = from.row(outer, inner, r)[unit];
  }
}

// Whether every row starts and ends at a multiple of `bytes`.
bool lies_on(const Matrix& m, std::int64_t bytes) {
  const std::int64_t size = size_of(m.tensor.dtype());
  const auto fits = [&](std::int64_t elements) { return elements * size % bytes == 0; };
  return reinterpret_cast<std::uintptr_t>(m.tensor.raw()) % static_cast<std::uintptr_t>(bytes) ==
             0 &&
         fits(m.cols) && fits(m.offset) && fits(m.outer_stride) && fits(m.inner_stride) &&
         fits(m.row_stride);
}

template <class T, class Unit>
MatrixRows<T> rows_of(const Matrix& m) {
  const auto units = [&](std::int64_t elements) {
    return elements * size_of(m.tensor.dtype()) / static_cast<std::int64_t>(sizeof(Unit));
  };
  return {static_cast<T*>(m.tensor.raw()) + units(m.offset), units(m.outer_stride),
          units(m.inner_stride), units(m.row_stride)};
}

template <class Unit>
void copy_in(const CopyMatrices& op, const CudaState& state) {
  const std::int64_t units =
      op.from.cols * size_of(op.from.tensor.dtype()) / static_cast<std::int64_t>(sizeof(Unit));
  const std::int64_t all = op.outer * op.inner * op.from.rows * units;
  if (all == 0) return;
  const auto blocks = static_cast<unsigned>(std::min((all + kThreads - 1) / kThreads, kMostBlocks));
  const auto launch = [&](auto zero) {
    using Index = decltype(zero);
    const Extents<Index> extents{static_cast<Index>(op.inner), static_cast<Index>(op.from.rows),
                                 static_cast<Index>(units), static_cast<Index>(all)};
    copy_matrices_kernel<Unit, Index><<<blocks, kThreads, 0, state.stream>>>(
        rows_of<const Unit, Unit>(op.from), rows_of<Unit, Unit>(op.to), extents);
  };
  // The loop index exceeds `all` by at most one step, which must not overflow.
  if (all + kMostBlocks * kThreads <= std::numeric_limits<std::uint32_t>::max()) {
    launch(std::uint32_t{0});
  } else {
    launch(std::uint64_t{0});
  }
}

}  // namespace

void compute(const CopyMatrices& op, CudaState& state) {
  const std::int64_t size = size_of(op.from.tensor.dtype());
  if (lies_on(op.from, 16) && lies_on(op.to, 16)) {
    copy_in<uint4>(op, state);
  } else if (size == 4) {
    copy_in<std::uint32_t>(op, state);
  } else if (size == 2) {
    copy_in<std::uint16_t>(op, state);
  } else {
    copy_in<std::uint8_t>(op, state);
  }
}

}  // namespace tpsim
