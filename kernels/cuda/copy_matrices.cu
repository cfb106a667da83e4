// Copies of matrices between two ways to lie in memory, 16 bytes at a time where all rows allow it.
#include <algorithm>

#include "kernels/cuda/cuda_ops.h"

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

template <class T>
__global__ void __launch_bounds__(kThreads)
    copy_matrices_kernel(const MatrixRows<const T> from, const MatrixRows<T> to, std::int64_t inner,
                         std::int64_t rows, std::int64_t units, std::int64_t all) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; at < all; at += step) {
    const std::int64_t row = at / units, unit = at % units;
    const std::int64_t batch = row / rows, r = row % rows;
    to.row(batch / inner, batch % inner, r)[unit] = from.row(batch / inner, batch % inner, r)[unit];
  }
}

// Whether every row begins and ends at a multiple of `bytes`.
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
  copy_matrices_kernel<Unit><<<blocks, kThreads, 0, state.stream>>>(
      rows_of<const Unit, Unit>(op.from), rows_of<Unit, Unit>(op.to), op.inner, op.from.rows, units,
      all);
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
