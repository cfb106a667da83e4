// LayerNorm and RMSNorm, backward. Each block iterates over rows, with fixed columns per thread,
// and keeps the sums for gain and bias in shared memory. A second kernel adds the sums of all
// blocks.
#include "kernels/cuda/elementwise/column_sums.cuh"
#include "kernels/cuda/elementwise/row_block.cuh"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

// 384 threads leave 168 registers per thread. With five packs per thread, a block holds a row of
// 14336 columns (BLOOM).
constexpr int kBackwardThreads = 384;

template <class T>
struct BackwardRows {
  const T* dy;
  const T* x;
  const T* gain;
  const T* residual;  // may be null
  const float* mean;  // null in RMSNorm
  const float* rstd;
  T* dx;
  float* partial;  // [blocks][2][cols]: sums for the gain, then for the bias
  std::int64_t rows;
  int cols;
  bool sums_in_shared;
  float offset;  // added to the gain
};

// Returns the memory for this block's sums: shared memory if large enough, else `partial`.
template <class T>
__device__ inline float* own_sums(const BackwardRows<T>& a, float* shared) {
  return a.sums_in_shared ? shared : a.partial + std::int64_t{blockIdx.x} * 2 * a.cols;
}

// In shared memory the two halves of a pack are separate, so that a warp's 16-byte accesses touch
// consecutive words. `half` is 0 or 1, `at` the pack's first column.
__device__ inline float4& half_pack(float* sums, int cols, std::int64_t at, int half) {
  return reinterpret_cast<float4*>(sums)[half * (cols / kPack) + at / kPack];
}

__device__ inline void add_halves(float* sums, int cols, std::int64_t at,
                                  const float (&terms)[kPack]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float4& sum = half_pack(sums, cols, at, half);
    const float* t = terms + 4 * half;
    sum = {sum.x + t[0], sum.y + t[1], sum.z + t[2], sum.w + t[3]};
  }
}

struct RowFacts {
  float mean, rstd;
  float g, g_xhat;  // means over the row of dy * gain and dy * gain * xhat
};

// Writes one pack of dx and adds to the column sums.
template <class T>
__device__ inline void finish_pack(const BackwardRows<T>& a, const Raw<T, kPack>& x,
                                   const Raw<T, kPack>& dy, std::int64_t row, std::int64_t at,
                                   RowFacts f, float* sums) {
  const std::int64_t element = row * a.cols + at;
  Raw<T, kPack> dx = constant_or_zeros<T, kPack>(a.residual, element);
  const Raw<T, kPack> gain = constant_at<T, kPack>(a.gain + at);
  float terms[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const float xhat = (x[i] - f.mean) * f.rstd;
    terms[i] = dy[i] * xhat;
    dx.set(i, f.rstd * (dy[i] * gain[i] - f.g - xhat * f.g_xhat) + dx[i]);
  }
  dx.write(a.dx + element);
  add_halves(sums, a.cols, at, terms);
#pragma unroll
  for (int i = 0; i < kPack; ++i) terms[i] = dy[i];
  add_halves(sums + a.cols, a.cols, at, terms);
}

// x and dy of one row, in this thread's columns.
template <class T, int P>
struct RowPair {
  Raw<T, kPack> x[P], dy[P];
  __device__ void read(const BackwardRows<T>& a, std::int64_t row) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const std::int64_t at = pack_begin(p);
      if (at >= a.cols || row >= a.rows) continue;
      x[p].read(a.x + row * a.cols + at);
      dy[p].read(a.dy + row * a.cols + at);
    }
  }
  __device__ void widen_again() {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      x[p].widen_again();
      dy[p].widen_again();
    }
  }
};

template <class T, int P>
__device__ inline RowFacts facts_of(const BackwardRows<T>& a, const RowPair<T, P>& pair,
                                    std::int64_t row) {
  RowFacts f{a.mean != nullptr ? a.mean[row] : 0.0F, a.rstd[row], 0, 0};
  float sums[2] = {0, 0};
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const std::int64_t at = pack_begin(p);
    if (at >= a.cols) continue;
    const Raw<T, kPack> gain = constant_at<T, kPack>(a.gain + at);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float g = pair.dy[p][i] * gain[i];
      sums[0] += g;
      sums[1] += g * (pair.x[p][i] - f.mean) * f.rstd;
    }
  }
  block_reduce(sums, SumOf());
  const float n = static_cast<float>(a.cols);
  f.g = a.mean != nullptr ? sums[0] / n : 0.0F;
  f.g_xhat = sums[1] / n;
  return f;
}

// With kAhead, a block loads the next row while it computes the current row.
template <class T, int P, bool kAhead>
__global__ void __launch_bounds__(kBackwardThreads) norm_backward_kernel(const BackwardRows<T> a) {
  extern __shared__ float4 shared_words[];
  float* const dgain = own_sums(a, reinterpret_cast<float*>(shared_words));
  float* const dbias = dgain + a.cols;
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (pack_begin(p) >= a.cols) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      half_pack(dgain, a.cols, pack_begin(p), half) = {0, 0, 0, 0};
      half_pack(dbias, a.cols, pack_begin(p), half) = {0, 0, 0, 0};
    }
  }
  RowPair<T, P> pair;
  if constexpr (kAhead) pair.read(a, blockIdx.x);
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    RowPair<T, P> next;
    if constexpr (kAhead) {
      next.read(a, row + gridDim.x);
    } else {
      pair.read(a, row);
    }
    const RowFacts f = facts_of(a, pair, row);
    pair.widen_again();
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const std::int64_t at = pack_begin(p);
      if (at < a.cols) finish_pack(a, pair.x[p], pair.dy[p], row, at, f, dgain);
    }
    if constexpr (kAhead) pair = next;
  }
  if (!a.sums_in_shared) return;
  float* const out = a.partial + std::int64_t{blockIdx.x} * 2 * a.cols;
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const std::int64_t at = pack_begin(p);
    if (at >= a.cols) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      *reinterpret_cast<float4*>(out + at + 4 * half) = half_pack(dgain, a.cols, at, half);
      *reinterpret_cast<float4*>(out + a.cols + at + 4 * half) = half_pack(dbias, a.cols, at, half);
    }
  }
}

// Fallback kernel for any width and alignment. The sums are stored in the order of the columns.
template <class T>
__global__ void __launch_bounds__(kRowThreads) norm_backward_any_kernel(const BackwardRows<T> a) {
  extern __shared__ float4 shared_words[];
  float* const dgain = own_sums(a, reinterpret_cast<float*>(shared_words));
  float* const dbias = dgain + a.cols;
  const int step = static_cast<int>(blockDim.x);
  const int begin = static_cast<int>(threadIdx.x);
  for (int c = begin; c < a.cols; c += step) dgain[c] = dbias[c] = 0;
  const float share = 1.0F / static_cast<float>(a.cols);
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t first = row * a.cols;
    const float mean = a.mean != nullptr ? a.mean[row] : 0.0F;
    const float rstd = a.rstd[row];
    float sums[2] = {0, 0};
    for (int c = begin; c < a.cols; c += step) {
      const float g = widened(a.dy[first + c]) * (widened(a.gain[c]) + a.offset);
      sums[0] += g;
      sums[1] += g * (widened(a.x[first + c]) - mean) * rstd;
    }
    block_reduce(sums, SumOf());
    const float average = a.mean != nullptr ? sums[0] * share : 0.0F;
    const float along = sums[1] * share;
    for (int c = begin; c < a.cols; c += step) {
      const float xhat = (widened(a.x[first + c]) - mean) * rstd;
      const float slope = widened(a.dy[first + c]);
      const float bypass = a.residual != nullptr ? widened(a.residual[first + c]) : 0.0F;
      const float g = slope * (widened(a.gain[c]) + a.offset);
      a.dx[first + c] = narrowed<T>(rstd * (g - average - xhat * along) + bypass);
      dgain[c] += slope * xhat;
      dbias[c] += slope;
    }
  }
  if (!a.sums_in_shared) return;
  float* const out = a.partial + std::int64_t{blockIdx.x} * 2 * a.cols;
  for (int c = begin; c < a.cols; c += step) {
    out[c] = dgain[c];
    out[a.cols + c] = dbias[c];
  }
}

// Returns how many blocks of `threads` threads and `shared` bytes the GPU can run at once.
std::int64_t resident_blocks(int threads, std::int64_t shared, const GpuLimits& limits) {
  const std::int64_t by_threads = 512 / threads;  // with up to 128 registers per thread
  const std::int64_t by_shared = limits.shared_memory / (shared + 1024);
  const std::int64_t each = std::max<std::int64_t>(1, std::min(by_threads, by_shared));
  return limits.multiprocessors * each;
}

std::int64_t bytes_of_sums(std::int64_t cols) { return 2 * cols * 4; }

// Whether the column sums and the buffers of the reductions fit in shared memory.
bool fits_in_shared(std::int64_t cols, const GpuLimits& limits) {
  return bytes_of_sums(cols) + 1024 <= limits.shared_memory;
}

template <class Kernel, class T>
void launch_backward(Kernel kernel, int threads, BackwardRows<T> a, const NormBackward& op,
                     CudaState& state) {
  const std::int64_t shared = a.sums_in_shared ? bytes_of_sums(a.cols) : 0;
  const std::int64_t blocks = std::min(resident_blocks(threads, shared, state.limits), a.rows);
  a.partial = state.scratch.array<float>(blocks * 2 * a.cols);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             "shared memory of a norm's gradient");
  kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(shared),
           state.stream>>>(a);
  add_partial_sums({a.partial, blocks, 2 * a.cols, a.cols}, any_floats(op.dgain), state);
  if (!op.dbias.defined()) return;
  add_partial_sums({a.partial + a.cols, blocks, 2 * a.cols, a.cols}, any_floats(op.dbias), state);
}

}  // namespace

void compute(const NormBackward& op, CudaState& state) {
  const std::int64_t cols = op.x.cols();
  const bool in_shared = fits_in_shared(cols, state.limits);
  // The packed kernels have no register left for an offset.
  const bool packed = in_shared && op.offset == 0 &&
                      pack_width(cols, {op.x, op.dy, op.dx, op.gain, op.residual}) == kPack;
  with_type(op.x.dtype(), [&]<class T>(Type<T>) {
    constexpr bool kNarrow = sizeof(T) == 2;  // two rows of packs fit in registers
    const bool centred = op.kind == NormKind::kLayerNorm;
    const BackwardRows<T> a{elements_of(op.dy),
                            elements_of(op.x),
                            elements_of(op.gain),
                            elements_of(op.residual),
                            elements_of(centred ? op.mean : Tensor()),
                            elements_of(op.rstd),
                            elements_of(op.dx),
                            nullptr,
                            op.x.rows(),
                            static_cast<int>(cols),
                            in_shared,
                            op.offset};
    const auto launch = [&](auto kernel, int threads) {
      launch_backward(kernel, threads, a, op, state);
    };
    const auto holds = [&](int packs) {
      return packed && cols <= row_capacity(packs, kBackwardThreads);
    };
    const auto threads = [&](int packs) { return row_threads(cols / kPack, packs); };
    if (holds(2)) {
      launch(norm_backward_kernel<T, 2, kNarrow>, threads(2));
    } else if (kNarrow && holds(5)) {
      if constexpr (kNarrow) launch(norm_backward_kernel<T, 5, true>, threads(5));
    } else {
      launch(norm_backward_any_kernel<T>, row_threads(cols, 4));
    }
  });
}

}  // namespace tpsim
