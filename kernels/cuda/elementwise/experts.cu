// Routing, permute and unpermute of tokens.
//
// Routing: one warp chooses the experts of one token, then one block per expert assigns its slots
// in the order of tokens. Permute and unpermute: one block per row, in packs if rows are aligned to
// 16 bytes.
#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/elementwise/elementwise.cuh"
#include "kernels/cuda/elementwise/row_block.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

struct Routing {
  const float* logits;  // [tokens, experts]
  float* weights;       // [tokens, k]
  std::int32_t* experts;
  std::int32_t* slots;
  std::int32_t* choices;  // [experts, capacity]
  std::int64_t tokens, count, k, capacity;
};

// Orders experts by logit, then by lower index: the higher key is chosen first. NaN comes last.
__device__ inline unsigned long long choice_key(float logit, std::int64_t expert) {
  const unsigned bits = static_cast<unsigned>(__float_as_int(logit + 0.0F));  // -0 becomes +0
  const unsigned rising = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  const unsigned rank = logit == logit ? rising : 0U;
  return (static_cast<unsigned long long>(rank) << 32) | ~static_cast<unsigned>(expert);
}

// A warp chooses the experts of one token. Choice j is the largest key below that of choice j - 1.
__global__ void __launch_bounds__(kElementwiseThreads) choose_kernel(const Routing a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t t = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (t >= a.tokens) return;
  const float* const row = a.logits + t * a.count;
  unsigned long long earlier = ~0ULL;
  float max = 0, sum = 0;
  for (std::int64_t j = 0; j < a.k; ++j) {
    unsigned long long best = 0;
    for (std::int64_t e = lane; e < a.count; e += kWarp) {
      const unsigned long long key = choice_key(row[e], e);
      if (key < earlier && key > best) best = key;
    }
    earlier = warp_reduced(best, MostOf());
    const std::int64_t expert = ~static_cast<unsigned>(earlier);
    if (j == 0) max = row[expert];
    const float weight = expf(row[expert] - max);
    sum += weight;
    if (lane != 0) continue;
    a.experts[t * a.k + j] = static_cast<std::int32_t>(expert);
    a.weights[t * a.k + j] = weight;
  }
  if (a.k == 1) {
    sum = 0;
    for (std::int64_t e = lane; e < a.count; e += kWarp) sum += expf(row[e] - max);
    sum = warp_reduced(sum, SumOf());
  }
  __syncwarp();  // the first lane's weights are visible to the others
  for (std::int64_t j = lane; j < a.k; j += kWarp) a.weights[t * a.k + j] /= sum;
}

constexpr int kSlotThreads = 512;

// Block e assigns the slots of expert e to its choices in the order of tokens. It processes
// kSlotThreads choices at a time.
__global__ void __launch_bounds__(kSlotThreads) take_slots_kernel(const Routing a) {
  __shared__ std::int32_t before_warp[kSlotThreads / kWarp];
  const std::int64_t expert = blockIdx.x;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  std::int32_t* const own = a.choices + expert * a.capacity;
  std::int64_t taken = 0;
  for (std::int64_t first = 0; first < a.tokens * a.k; first += kSlotThreads) {
    const std::int64_t choice = first + threadIdx.x;
    const bool mine = choice < a.tokens * a.k && a.experts[choice] == expert;
    const unsigned votes = __ballot_sync(0xffffffffU, mine);
    if (lane == 0) before_warp[warp] = __popc(votes);
    __syncthreads();
    std::int64_t place = taken + __popc(votes & ((1U << lane) - 1));
    for (int w = 0; w < kSlotThreads / kWarp; ++w) {
      if (w < warp) place += before_warp[w];
      taken += before_warp[w];
    }
    if (mine) {
      const bool fits = place < a.capacity;
      a.slots[choice] = fits ? static_cast<std::int32_t>(expert * a.capacity + place) : -1;
      if (fits) own[place] = static_cast<std::int32_t>(choice);
    }
    __syncthreads();  // the next round overwrites before_warp
  }
  for (std::int64_t place = taken + threadIdx.x; place < a.capacity; place += kSlotThreads) {
    own[place] = -1;
  }
}

template <class T>
struct RouteSlopes {
  const float* logits;
  const float* weights;
  const float* dweights;
  const std::int32_t* experts;
  T* dlogits;
  std::int64_t tokens, count, k;
};

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    route_backward_kernel(const RouteSlopes<T> a) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= a.tokens) return;
  const float* const row = a.logits + t * a.count;
  const float* const weights = a.weights + t * a.k;
  const float* const dweights = a.dweights + t * a.k;
  const std::int32_t* const chosen = a.experts + t * a.k;
  T* const out = a.dlogits + t * a.count;
  float mean = 0;
  for (std::int64_t j = 0; j < a.k; ++j) mean += weights[j] * dweights[j];
  for (std::int64_t e = 0; e < a.count; ++e) {
    out[e] = narrowed<T>(a.k == 1 ? -mean * weights[0] * expf(row[e] - row[chosen[0]]) : 0.0F);
  }
  for (std::int64_t j = 0; j < a.k; ++j) {
    out[chosen[j]] = narrowed<T>(weights[j] * (dweights[j] - mean));
  }
}

template <class T>
struct TokenRows {
  const T* x;
  const float* weights;       // null: 1
  const std::int32_t* index;  // choices by slot, or slots by choice
  T* y;
  std::int64_t cols, k;

  __device__ float weight(std::int64_t choice) const {
    return weights != nullptr ? weights[choice] : 1.0F;
  }
};

// Calls visit(first column) for every pack of V columns of a row. V must divide `cols`.
template <int V, class Visit>
__device__ inline void for_each_pack(std::int64_t cols, Visit visit) {
  for (std::int64_t c = std::int64_t{threadIdx.x} * V; c < cols;
       c += std::int64_t{blockDim.x} * V) {
    visit(c);
  }
}

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) dispatch_kernel(const TokenRows<T> a) {
  const std::int64_t slot = blockIdx.x;
  const std::int64_t choice = a.index[slot];
  const float weight = choice >= 0 ? a.weight(choice) : 0.0F;
  const T* const from = choice >= 0 ? a.x + choice / a.k * a.cols : nullptr;
  for_each_pack<V>(a.cols, [&](std::int64_t c) {
    Raw<T, V> row = raw_or_zeros<T, V>(from, c);
#pragma unroll
    for (int i = 0; i < V; ++i) row.set(i, choice >= 0 ? weight * row[i] : 0.0F);
    row.write(a.y + slot * a.cols + c);
  });
}

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) combine_kernel(const TokenRows<T> a) {
  const std::int64_t t = blockIdx.x;
  for_each_pack<V>(a.cols, [&](std::int64_t c) {
    float sums[V] = {};
    for (std::int64_t choice = t * a.k; choice < (t + 1) * a.k; ++choice) {
      const std::int64_t slot = a.index[choice];
      if (slot < 0) continue;
      const Raw<T, V> row = raw_at<T, V>(a.x + slot * a.cols + c);
      const float weight = a.weight(choice);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += weight * row[i];
    }
    Raw<T, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) out.set(i, sums[i]);
    out.write(a.y + t * a.cols + c);
  });
}

template <class T>
struct WeightSlopes {
  const T *dy, *x;
  const std::int32_t* slots;
  float* dweights;
  std::int64_t cols, k;
};

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) weight_gradient_kernel(const WeightSlopes<T> a) {
  const std::int64_t choice = blockIdx.x;
  const std::int64_t slot = a.slots[choice];
  float sum[1] = {0};
  for_each_pack<V>(slot >= 0 ? a.cols : 0, [&](std::int64_t c) {
    const Raw<T, V> dy = raw_at<T, V>(a.dy + choice / a.k * a.cols + c);
    const Raw<T, V> x = raw_at<T, V>(a.x + slot * a.cols + c);
#pragma unroll
    for (int i = 0; i < V; ++i) sum[0] += dy[i] * x[i];
  });
  block_reduce(sum, SumOf());
  if (threadIdx.x == 0) a.dweights[choice] = sum[0];
}

// Returns the number of threads for a row: a thread processes one pack or up to four columns.
int threads_of(std::int64_t cols, int width) { return row_threads(cols, width == 1 ? 4 : width); }

unsigned blocks_of(std::int64_t threads) {
  return static_cast<unsigned>((threads + kElementwiseThreads - 1) / kElementwiseThreads);
}

}  // namespace

void compute(const RouteForward& op, CudaState& state) {
  const Routing a{elements_of(op.logits), elements_of(op.weights), elements_of(op.experts),
                  elements_of(op.slots),  elements_of(op.choices), op.logits.rows(),
                  op.logits.cols(),       op.weights.cols(),       op.choices.cols()};
  choose_kernel<<<blocks_of(a.tokens * kWarp), kElementwiseThreads, 0, state.stream>>>(a);
  take_slots_kernel<<<static_cast<unsigned>(a.count), kSlotThreads, 0, state.stream>>>(a);
}

void compute(const RouteBackward& op, CudaState& state) {
  with_type(op.dlogits.dtype(), [&]<class T>(Type<T>) {
    const RouteSlopes<T> a{elements_of(op.logits),   elements_of(op.weights),
                           elements_of(op.dweights), elements_of(op.experts),
                           elements_of(op.dlogits),  op.logits.rows(),
                           op.logits.cols(),         op.weights.cols()};
    route_backward_kernel<<<blocks_of(a.tokens), kElementwiseThreads, 0, state.stream>>>(a);
  });
}

void compute(const PermuteTokens& op, CudaState& state) {
  const int width = pack_width(op.x.cols(), {op.x, op.y});
  with_type_and_width(op.x.dtype(), width, [&]<class T, int V>(Type<T>, Width<V>) {
    const TokenRows<T> a{elements_of(op.x),
                         elements_of(op.weights),
                         elements_of(op.choices),
                         elements_of(op.y),
                         op.x.cols(),
                         op.per_token};
    dispatch_kernel<T, V><<<static_cast<unsigned>(op.choices.elements()), threads_of(a.cols, width),
                            0, state.stream>>>(a);
  });
}

void compute(const UnpermuteTokens& op, CudaState& state) {
  const int width = pack_width(op.y.cols(), {op.x, op.y});
  with_type_and_width(op.y.dtype(), width, [&]<class T, int V>(Type<T>, Width<V>) {
    const TokenRows<T> a{elements_of(op.x),     elements_of(op.weights),
                         elements_of(op.slots), elements_of(op.y),
                         op.y.cols(),           op.slots.cols()};
    combine_kernel<T, V>
        <<<static_cast<unsigned>(op.y.rows()), threads_of(a.cols, width), 0, state.stream>>>(a);
  });
}

void compute(const RouteWeightGradient& op, CudaState& state) {
  const int width = pack_width(op.dy.cols(), {op.dy, op.x});
  with_type_and_width(op.dy.dtype(), width, [&]<class T, int V>(Type<T>, Width<V>) {
    const WeightSlopes<T> a{elements_of(op.dy),       elements_of(op.x), elements_of(op.slots),
                            elements_of(op.dweights), op.dy.cols(),      op.slots.cols()};
    weight_gradient_kernel<T, V><<<static_cast<unsigned>(op.slots.elements()),
                                   threads_of(a.cols, width), 0, state.stream>>>(a);
  });
}

}  // namespace tpsim
