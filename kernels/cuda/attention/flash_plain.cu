// Flash attention for every dtype, head_dim and layout, without tensor cores. A warp processes one
// query, or one key for dk and dv. In the first phase, each of the 32 lanes computes the score of
// one key (or query). In the second phase, each lane sums some elements of the weighted vectors.
// The warp's own vector and its sums are in shared memory.
#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {
namespace {

constexpr int kWarps = 4;
constexpr unsigned kAllLanes = 0xffffffffU;

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kWarp; }

// This warp's row of an array [batch, heads, positions]; `exists` is false beyond the last row.
struct RowPlace {
  int position, head, sample;
  bool exists;
};
__device__ inline RowPlace row_place(int positions, int heads, std::int64_t rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  return {static_cast<int>(row % positions), static_cast<int>(row / positions % heads),
          static_cast<int>(row / positions / heads), row < rows};
}

// Returns the warp's i-th vector of head_dim floats in shared memory.
__device__ inline float* own_vector(float* shared, int vectors, int i, int head_dim) {
  return shared + (static_cast<int>(threadIdx.x) / kWarp * vectors + i) * head_dim;
}

template <class T>
__device__ inline void load_vector(const T* from, int head_dim, float* to) {
  for (int d = lane_of_thread(); d < head_dim; d += kWarp) to[d] = widened(from[d]);
  __syncwarp();
}
__device__ inline void clear_vector(int head_dim, float* to) {
  for (int d = lane_of_thread(); d < head_dim; d += kWarp) to[d] = 0;
  __syncwarp();
}
template <class T>
__device__ inline void store_vector(const float* from, float factor, int head_dim, T* to) {
  for (int d = lane_of_thread(); d < head_dim; d += kWarp) to[d] = narrowed<T>(from[d] * factor);
}

template <class T>
__device__ inline float dot(const float* x, const T* y, int head_dim) {
  float sum = 0;
  for (int d = 0; d < head_dim; ++d) sum += x[d] * widened(y[d]);
  return sum;
}

// into += sum over lanes i < count of (weight of lane i) * (i-th vector from `first`).
template <class T>
__device__ inline void add_weighted(float weight, int count, const T* first, std::int64_t stride,
                                    int head_dim, float* into) {
  for (int begin = 0; begin < head_dim; begin += kWarp) {
    const int d = begin + lane_of_thread();
    float sum = 0;
    for (int i = 0; i < count; ++i) {
      const float w = __shfl_sync(kAllLanes, weight, i);
      if (d < head_dim) sum += w * widened(first[i * stride + d]);
    }
    if (d < head_dim) into[d] += sum;
  }
  __syncwarp();
}

// A score before ALiBi, and its derivative by the dot product of query and key.
struct Score {
  float value, slope;
};
__device__ inline Score score_of(float product, const FlashSizes& s) {
  if (s.cap == 0) return {s.scale * product, s.scale};
  const float t = tanhf(s.scale * product / s.cap);
  return {s.cap * t, s.scale * (1.0F - t * t)};
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp, 4)
    flash_forward_plain_kernel(const FlashForwardArgs<T> a, std::int64_t rows) {
  extern __shared__ float vectors[];
  const FlashSizes s = a.sizes;
  const RowPlace at = row_place(s.seq, s.heads, rows);
  if (!at.exists) return;
  float* const q = own_vector(vectors, 2, 0, s.head_dim);
  float* const out = own_vector(vectors, 2, 1, s.head_dim);
  load_vector(a.q.at(at.sample, at.head) + at.position * a.q.position, s.head_dim, q);
  clear_vector(s.head_dim, out);
  const T* const keys = a.k.at(at.sample, at.head / s.group());
  const T* const values = a.v.at(at.sample, at.head / s.group());
  const float slope = a.slopes != nullptr ? a.slopes[at.head] : 0.0F;
  float max = -INFINITY, sum = 0;
  const int visible = at.position + 1 + s.earlier();
  for (int first = s.first_key(at.position); first < visible; first += kWarp) {
    const int key = first + lane_of_thread();
    const int count = min(kWarp, visible - first);
    float score = -INFINITY;
    if (key < visible) {
      const float product = dot(q, keys + key * a.k.position, s.head_dim);
      score = score_of(product, s).value + slope * static_cast<float>(key);
    }
    const float higher = fmaxf(max, warp_reduced(score, MaxOf()));
    const float shrink = expf(max - higher);
    const float weight = expf(score - higher);
    max = higher;
    sum = sum * shrink + warp_reduced(weight, SumOf());
    for (int d = lane_of_thread(); d < s.head_dim; d += kWarp) out[d] *= shrink;
    add_weighted(weight, count, values + first * a.v.position, a.v.position, s.head_dim, out);
  }
  store_vector(out, 1.0F / sum, s.head_dim,
               a.o.at(at.sample, at.head) + at.position * a.o.position);
  if (lane_of_thread() == 0) a.log_sum[s.row(at.sample, at.head) + at.position] = max + logf(sum);
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp, 4)
    flash_along_kernel(const FlashBackwardArgs<T> a, std::int64_t rows, Cleared cleared) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * (kWarps * kWarp) + threadIdx.x;
  if (thread < cleared.count) cleared.numbers[thread] = 0;
  const FlashSizes s = a.sizes;
  const RowPlace at = row_place(s.seq, s.heads, rows);
  if (!at.exists) return;
  const T* const o = a.o.at(at.sample, at.head) + at.position * a.o.position;
  const T* const d_o = a.d_o.at(at.sample, at.head) + at.position * a.d_o.position;
  float sum = 0;
  for (int d = lane_of_thread(); d < s.head_dim; d += kWarp) sum += widened(o[d]) * widened(d_o[d]);
  sum = warp_reduced(sum, SumOf());
  if (lane_of_thread() == 0) a.along[s.row(at.sample, at.head) + at.position] = sum;
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp, 4)
    flash_dq_plain_kernel(const FlashBackwardArgs<T> a, std::int64_t rows) {
  extern __shared__ float vectors[];
  const FlashSizes s = a.sizes;
  const RowPlace at = row_place(s.seq, s.heads, rows);
  if (!at.exists) return;
  float* const q = own_vector(vectors, 3, 0, s.head_dim);
  float* const d_o = own_vector(vectors, 3, 1, s.head_dim);
  float* const dq = own_vector(vectors, 3, 2, s.head_dim);
  load_vector(a.q.at(at.sample, at.head) + at.position * a.q.position, s.head_dim, q);
  load_vector(a.d_o.at(at.sample, at.head) + at.position * a.d_o.position, s.head_dim, d_o);
  clear_vector(s.head_dim, dq);
  const T* const keys = a.k.at(at.sample, at.head / s.group());
  const T* const values = a.v.at(at.sample, at.head / s.group());
  const float slope = a.slopes != nullptr ? a.slopes[at.head] : 0.0F;
  const std::int64_t row = s.row(at.sample, at.head) + at.position;
  const int visible = at.position + 1 + s.earlier();
  for (int first = s.first_key(at.position); first < visible; first += kWarp) {
    const int key = first + lane_of_thread();
    float weight = 0;
    if (key < visible) {
      const Score score = score_of(dot(q, keys + key * a.k.position, s.head_dim), s);
      const float biased = score.value + slope * static_cast<float>(key);
      const float dprob = dot(d_o, values + key * a.v.position, s.head_dim);
      weight = score.slope * expf(biased - a.log_sum[row]) * (dprob - a.along[row]);
    }
    add_weighted(weight, min(kWarp, visible - first), keys + first * a.k.position, a.k.position,
                 s.head_dim, dq);
  }
  store_vector(dq, 1.0F, s.head_dim, a.dq.at(at.sample, at.head) + at.position * a.dq.position);
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp, 4)
    flash_dkv_plain_kernel(const FlashBackwardArgs<T> a, std::int64_t rows) {
  extern __shared__ float vectors[];
  const FlashSizes s = a.sizes;
  const RowPlace at = row_place(s.keys, s.kv_heads, rows);
  if (!at.exists) return;
  float* const k = own_vector(vectors, 4, 0, s.head_dim);
  float* const v = own_vector(vectors, 4, 1, s.head_dim);
  float* const dk = own_vector(vectors, 4, 2, s.head_dim);
  float* const dv = own_vector(vectors, 4, 3, s.head_dim);
  load_vector(a.k.at(at.sample, at.head) + at.position * a.k.position, s.head_dim, k);
  load_vector(a.v.at(at.sample, at.head) + at.position * a.v.position, s.head_dim, v);
  clear_vector(s.head_dim, dk);
  clear_vector(s.head_dim, dv);
  for (int head = at.head * s.group(); head < (at.head + 1) * s.group(); ++head) {
    const T* const queries = a.q.at(at.sample, head);
    const T* const d_os = a.d_o.at(at.sample, head);
    const float slope = a.slopes != nullptr ? a.slopes[head] : 0.0F;
    const std::int64_t row = s.row(at.sample, head);
    for (int first = max(at.position - s.earlier(), 0); first < s.seq; first += kWarp) {
      if (s.first_key(first) > at.position) break;  // later queries see later keys only
      const int query = first + lane_of_thread();
      const int count = min(kWarp, s.seq - first);
      float prob = 0, weight = 0;
      if (query < s.seq && s.first_key(query) <= at.position) {
        const Score score = score_of(dot(k, queries + query * a.q.position, s.head_dim), s);
        const float biased = score.value + slope * static_cast<float>(at.position);
        const float dprob = dot(v, d_os + query * a.d_o.position, s.head_dim);
        prob = expf(biased - a.log_sum[row + query]);
        weight = score.slope * prob * (dprob - a.along[row + query]);
      }
      add_weighted(prob, count, d_os + first * a.d_o.position, a.d_o.position, s.head_dim, dv);
      add_weighted(weight, count, queries + first * a.q.position, a.q.position, s.head_dim, dk);
    }
  }
  store_vector(dk, 1.0F, s.head_dim, a.dk.at(at.sample, at.head) + at.position * a.dk.position);
  store_vector(dv, 1.0F, s.head_dim, a.dv.at(at.sample, at.head) + at.position * a.dv.position);
}

// Launches one warp per row. Each warp has shared memory for `vectors` vectors of head_dim floats.
template <class Kernel, class Args, class... More>
void launch(Kernel kernel, const Args& args, std::int64_t rows, int vectors, const CudaState& state,
            const More&... more) {
  const std::int64_t shared = std::int64_t{kWarps} * vectors * args.sizes.head_dim * 4;
  TPSIM_CHECK(shared <= state.limits.shared_memory, "heads that fit in shared memory");
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             "shared memory of plain attention");
  const auto blocks = static_cast<unsigned>((rows + kWarps - 1) / kWarps);
  kernel<<<blocks, kWarps * kWarp, static_cast<std::size_t>(shared), state.stream>>>(args, rows,
                                                                                     more...);
}

}  // namespace

void flash_forward_plainly(const FlashForward& op, CudaState& state) {
  const std::int64_t rows = op.dims.batch * op.dims.heads * op.dims.seq;
  with_type(op.q.tensor.dtype(), [&]<class T>(Type<T>) {
    launch(flash_forward_plain_kernel<T>, forward_args<T>(op), rows, 2, state);
  });
}

void flash_along(const FlashBackward& op, float* along, Cleared cleared, CudaState& state) {
  const std::int64_t rows = op.dims.batch * op.dims.heads * op.dims.seq;
  TPSIM_CHECK(cleared.count <= rows * kWarp, "a thread for each number that is cleared");
  with_type(op.q.tensor.dtype(), [&]<class T>(Type<T>) {
    launch(flash_along_kernel<T>, backward_args<T>(op, along), rows, 0, state, cleared);
  });
}

void flash_backward_plainly(const FlashBackward& op, float* along, CudaState& state) {
  const std::int64_t queries = op.dims.batch * op.dims.heads * op.dims.seq;
  const std::int64_t keys = op.dims.batch * op.dims.kv_heads * key_count(op.dims);
  with_type(op.q.tensor.dtype(), [&]<class T>(Type<T>) {
    const FlashBackwardArgs<T> args = backward_args<T>(op, along);
    launch(flash_dq_plain_kernel<T>, args, queries, 3, state);
    launch(flash_dkv_plain_kernel<T>, args, keys, 4, state);
  });
}

}  // namespace tpsim
