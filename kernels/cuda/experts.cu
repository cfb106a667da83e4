// Routing to experts, and the way of tokens to their slots and back.
//
// A thread routes a token; a block then hands out an expert's slots, in the order of tokens. Rows
// are moved by a block each.
#include "kernels/cuda/block_sums.cuh"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/row_block.cuh"

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

__device__ bool is_chosen(const std::int32_t* chosen, std::int64_t k, std::int64_t expert) {
  for (std::int64_t j = 0; j < k; ++j) {
    if (chosen[j] == expert) return true;
  }
  return false;
}

__global__ void __launch_bounds__(kElementwiseThreads) choose_kernel(const Routing a) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= a.tokens) return;
  const float* const row = a.logits + t * a.count;
  std::int32_t* const chosen = a.experts + t * a.k;
  for (std::int64_t j = 0; j < a.k; ++j) {
    std::int64_t best = -1;
    for (std::int64_t e = 0; e < a.count; ++e) {
      if (best >= 0 && !(row[e] > row[best])) continue;  // of equals the first; never a NaN
      if (!is_chosen(chosen, j, e)) best = e;
    }
    chosen[j] = static_cast<std::int32_t>(best);
  }
  const float max = row[chosen[0]];
  float sum = 0;
  if (a.k == 1) {
    for (std::int64_t e = 0; e < a.count; ++e) sum += expf(row[e] - max);
  } else {
    for (std::int64_t j = 0; j < a.k; ++j) sum += expf(row[chosen[j]] - max);
  }
  for (std::int64_t j = 0; j < a.k; ++j) a.weights[t * a.k + j] = expf(row[chosen[j]] - max) / sum;
}

constexpr int kSlotThreads = 512;

// Block e: the choices of expert e, counted up in the order of tokens, kSlotThreads at a time.
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
    __syncthreads();  // before_warp is written anew
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

template <class T>
__global__ void __launch_bounds__(kRowThreads) dispatch_kernel(const TokenRows<T> a) {
  const std::int64_t slot = blockIdx.x;
  const std::int64_t choice = a.index[slot];
  const float weight = choice >= 0 ? a.weight(choice) : 0.0F;
  const T* const from = a.x + (choice >= 0 ? choice / a.k : 0) * a.cols;
  for (std::int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
    a.y[slot * a.cols + c] = narrowed<T>(choice >= 0 ? weight * widened(from[c]) : 0.0F);
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads) combine_kernel(const TokenRows<T> a) {
  const std::int64_t t = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
    float sum = 0;
    for (std::int64_t choice = t * a.k; choice < (t + 1) * a.k; ++choice) {
      const std::int64_t slot = a.index[choice];
      if (slot >= 0) sum += a.weight(choice) * widened(a.x[slot * a.cols + c]);
    }
    a.y[t * a.cols + c] = narrowed<T>(sum);
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    weight_gradient_kernel(const T* dy, const T* x, const std::int32_t* slots, float* dweights,
                           std::int64_t cols, std::int64_t k) {
  const std::int64_t choice = blockIdx.x;
  const std::int64_t slot = slots[choice];
  float sum[1] = {0};
  for (std::int64_t c = threadIdx.x; slot >= 0 && c < cols; c += blockDim.x) {
    sum[0] += widened(dy[choice / k * cols + c]) * widened(x[slot * cols + c]);
  }
  block_reduce(sum, SumOf());
  if (threadIdx.x == 0) dweights[choice] = sum[0];
}

unsigned blocks_of(std::int64_t threads) {
  return static_cast<unsigned>((threads + kElementwiseThreads - 1) / kElementwiseThreads);
}

}  // namespace

void compute(const RouteForward& op, CudaState& state) {
  const Routing a{elements_of<float>(op.logits),
                  elements_of<float>(op.weights),
                  elements_of<std::int32_t>(op.experts),
                  elements_of<std::int32_t>(op.slots),
                  elements_of<std::int32_t>(op.choices),
                  op.logits.rows(),
                  op.logits.cols(),
                  op.weights.cols(),
                  op.choices.cols()};
  choose_kernel<<<blocks_of(a.tokens), kElementwiseThreads, 0, state.stream>>>(a);
  take_slots_kernel<<<static_cast<unsigned>(a.count), kSlotThreads, 0, state.stream>>>(a);
}

void compute(const RouteBackward& op, CudaState& state) {
  with_type(op.dlogits.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RouteSlopes<T> a{elements_of<float>(op.logits),
                           elements_of<float>(op.weights),
                           elements_of<float>(op.dweights),
                           elements_of<std::int32_t>(op.experts),
                           elements_of<T>(op.dlogits),
                           op.logits.rows(),
                           op.logits.cols(),
                           op.weights.cols()};
    route_backward_kernel<<<blocks_of(a.tokens), kElementwiseThreads, 0, state.stream>>>(a);
  });
}

void compute(const DispatchTokens& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const TokenRows<T> a{elements_of<T>(op.x),
                         elements_of<float>(op.weights),
                         elements_of<std::int32_t>(op.choices),
                         elements_of<T>(op.y),
                         op.x.cols(),
                         op.per_token};
    dispatch_kernel<<<static_cast<unsigned>(op.choices.elements()), row_threads(a.cols, 4), 0,
                      state.stream>>>(a);
  });
}

void compute(const CombineTokens& op, CudaState& state) {
  with_type(op.y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const TokenRows<T> a{elements_of<T>(op.x),
                         elements_of<float>(op.weights),
                         elements_of<std::int32_t>(op.slots),
                         elements_of<T>(op.y),
                         op.y.cols(),
                         op.slots.cols()};
    combine_kernel<<<static_cast<unsigned>(op.y.rows()), row_threads(a.cols, 4), 0, state.stream>>>(
        a);
  });
}

void compute(const RouteWeightGradient& op, CudaState& state) {
  with_type(op.dy.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const std::int64_t cols = op.dy.cols();
    weight_gradient_kernel<<<static_cast<unsigned>(op.slots.elements()), row_threads(cols, 4), 0,
                             state.stream>>>(
        elements_of<T>(op.dy), elements_of<T>(op.x), elements_of<std::int32_t>(op.slots),
        elements_of<float>(op.dweights), cols, op.slots.cols());
  });
}

}  // namespace tpsim
