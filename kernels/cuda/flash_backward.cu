// Flash attention backward on tensor cores, in two kernels without atomics, so that the same values
// give the same bits: one keeps queries and meets keys (for dq), one keeps keys and meets queries
// (for dk and dv). Probabilities are computed again from log_sum in both: seven products, not five.
//
// In each, four warps keep 16 rows apiece, and tiles of kMet rows of the other side pass by, the
// next one arriving while one is multiplied.
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/flash.cuh"
#include "kernels/cuda/flash_paths.h"
#include "kernels/cuda/packs.cuh"

namespace tpsim {
namespace {

constexpr int kThreads = 128;
constexpr int kKept = kThreads / 32 * 16;
constexpr int kMet = 32;

// Two kept tiles, and two pairs of tiles that pass by.
template <int D>
struct Tiles {
  static constexpr int kChunks = D / kChunk;
  static constexpr int kBytes = (2 * kKept + 4 * kMet) * D * 2;
  uint4* shared;
  __device__ uint4* kept(int which) const { return shared + which * kKept * kChunks; }
  __device__ uint4* met(int which, int turn) const {
    return shared + (2 * kKept + (2 * turn + which) * kMet) * kChunks;
  }
};

// Grid: (tiles of queries, heads, batch). Scores are [query][key].
template <class T, int D>
__global__ void __launch_bounds__(kThreads, 2) flash_dq_kernel(const FlashBackwardArgs<T> a) {
  extern __shared__ __align__(256) uint4 shared[];
  const Tiles<D> tiles{shared};
  const FlashSizes s = a.sizes;
  const int head = static_cast<int>(blockIdx.y), sample = static_cast<int>(blockIdx.z);
  const int block_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kKept;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T* const keys = a.k.at(sample, head / s.group());
  const T* const values = a.v.at(sample, head / s.group());
  const float slope2 = (a.slopes != nullptr ? a.slopes[head] : 0.0F) * kLog2E;
  const float scale2 = s.scale * kLog2E;
  const auto fetch = [&](int first_key, int turn) {
    fetch_tile<T, D, kMet, kThreads>(tiles.met(0, turn), keys, a.k.position, first_key, s.keys,
                                     s.head_dim);
    fetch_tile<T, D, kMet, kThreads>(tiles.met(1, turn), values, a.v.position, first_key, s.keys,
                                     s.head_dim);
    commit_copies();
  };

  fetch_tile<T, D, kKept, kThreads>(tiles.kept(0), a.q.at(sample, head), a.q.position, block_row,
                                    s.seq, s.head_dim);
  fetch_tile<T, D, kKept, kThreads>(tiles.kept(1), a.d_o.at(sample, head), a.d_o.position,
                                    block_row, s.seq, s.head_dim);
  fetch(0, 0);
  int query[2];
  float log_sum2[2], along[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    query[half] = block_row + warp_row + result_row(lane, 2 * half);
    const bool real = query[half] < s.seq;
    const std::int64_t at = s.row(sample, head) + query[half];
    log_sum2[half] = real ? a.log_sum[at] * kLog2E : 0.0F;
    along[half] = real ? a.along[at] : 0.0F;
  }

  float dq[1][D / 8][4] = {};
  const int end = min(block_row + kKept + s.earlier(), s.keys);
  int turn = 0;
  for (int first_key = 0; first_key < end; first_key += kMet, turn ^= 1) {
    wait_for_copies<0>();
    __syncthreads();  // these tiles are here, and the last ones have been used
    if (first_key + kMet < end) fetch(first_key + kMet, turn ^ 1);
    if (first_key > block_row + warp_row + 15 + s.earlier())
      continue;  // this warp sees none of these keys
    float scores[1][kMet / 8][4] = {}, slopes[1][kMet / 8][4] = {};
    add_product_by_column<T, D, 1, kMet>(scores, tiles.kept(0), warp_row, tiles.met(0, turn));
    add_product_by_column<T, D, 1, kMet>(slopes, tiles.kept(1), warp_row, tiles.met(1, turn));
#pragma unroll
    for (int n = 0; n < kMet / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first_key + n * 8 + result_col(lane, i);
        const bool seen = key <= query[i / 2] + s.earlier() && query[i / 2] < s.seq;
        const float score2 = scale2 * scores[0][n][i] + slope2 * static_cast<float>(key);
        const float prob = seen ? exp2_fast(score2 - log_sum2[i / 2]) : 0.0F;
        slopes[0][n][i] = s.scale * prob * (slopes[0][n][i] - along[i / 2]);
      }
    }
    add_product_by_depth<T, D, 1, kMet>(dq, slopes, tiles.met(0, turn));
  }
  const float one[2] = {1, 1};
  store_result<T, D>(dq[0], one, a.dq.at(sample, head), a.dq.position, block_row + warp_row,
                     s.queries());
}

// Grid: (tiles of keys, kv_heads, batch). Scores are [key][query]; the queries of all heads that
// read these keys pass by, one head after another.
template <class T, int D>
__global__ void __launch_bounds__(kThreads, 2) flash_dkv_kernel(const FlashBackwardArgs<T> a) {
  extern __shared__ __align__(256) uint4 shared[];
  const Tiles<D> tiles{shared};
  const FlashSizes s = a.sizes;
  const int kv_head = static_cast<int>(blockIdx.y), sample = static_cast<int>(blockIdx.z);
  const int block_row = static_cast<int>(blockIdx.x) * kKept;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float scale2 = s.scale * kLog2E;
  const auto fetch = [&](int head, int first_query, int turn) {
    fetch_tile<T, D, kMet, kThreads>(tiles.met(0, turn), a.q.at(sample, head), a.q.position,
                                     first_query, s.seq, s.head_dim);
    fetch_tile<T, D, kMet, kThreads>(tiles.met(1, turn), a.d_o.at(sample, head), a.d_o.position,
                                     first_query, s.seq, s.head_dim);
    commit_copies();
  };

  fetch_tile<T, D, kKept, kThreads>(tiles.kept(0), a.k.at(sample, kv_head), a.k.position, block_row,
                                    s.keys, s.head_dim);
  fetch_tile<T, D, kKept, kThreads>(tiles.kept(1), a.v.at(sample, kv_head), a.v.position, block_row,
                                    s.keys, s.head_dim);
  // Queries before this one see none of the block's keys.
  const int start = max(block_row - s.earlier(), 0);
  int head = kv_head * s.group(), first_query = start, turn = 0;
  const int last_head = head + s.group() - 1;
  fetch(head, first_query, turn);
  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
  for (int next_head = head, next_query = first_query; next_head <= last_head;
       head = next_head, first_query = next_query, turn ^= 1) {
    next_query = first_query + kMet;
    if (next_query >= s.seq) {
      next_query = start;
      next_head = head + 1;
    }
    wait_for_copies<0>();
    __syncthreads();  // these tiles are here, and the last ones have been used
    if (next_head <= last_head) fetch(next_head, next_query, turn ^ 1);
    if (first_query + kMet + s.earlier() <= block_row + warp_row)
      continue;  // none sees this warp's keys
    const float slope2 = (a.slopes != nullptr ? a.slopes[head] : 0.0F) * kLog2E;
    float probs[1][kMet / 8][4] = {}, slopes[1][kMet / 8][4] = {};
    add_product_by_column<T, D, 1, kMet>(probs, tiles.kept(0), warp_row, tiles.met(0, turn));
    add_product_by_column<T, D, 1, kMet>(slopes, tiles.kept(1), warp_row, tiles.met(1, turn));
    const float* const log_sums = a.log_sum + s.row(sample, head);
    const float* const alongs = a.along + s.row(sample, head);
#pragma unroll
    for (int n = 0; n < kMet / 8; ++n) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int query = first_query + n * 8 + result_col(lane, side);
        const bool real = query < s.seq;
        const float log_sum2 = real ? log_sums[query] * kLog2E : 0.0F;
        const float along = real ? alongs[query] : 0.0F;
#pragma unroll
        for (int i = side; i < 4; i += 2) {
          const int key = block_row + warp_row + result_row(lane, i);
          const float score2 = scale2 * probs[0][n][i] + slope2 * static_cast<float>(key);
          const float prob =
              real && key <= query + s.earlier() ? exp2_fast(score2 - log_sum2) : 0.0F;
          probs[0][n][i] = prob;
          slopes[0][n][i] = s.scale * prob * (slopes[0][n][i] - along);
        }
      }
    }
    add_product_by_depth<T, D, 1, kMet>(dv, probs, tiles.met(1, turn));
    add_product_by_depth<T, D, 1, kMet>(dk, slopes, tiles.met(0, turn));
  }
  const float one[2] = {1, 1};
  const int first = block_row + warp_row;
  store_result<T, D>(dk[0], one, a.dk.at(sample, kv_head), a.dk.position, first,
                     s.keys_and_values());
  store_result<T, D>(dv[0], one, a.dv.at(sample, kv_head), a.dv.position, first,
                     s.keys_and_values());
}

template <class T, int D>
void launch(const FlashBackward& op, float* along, const CudaState& state) {
  const FlashBackwardArgs<T> args = backward_args<T>(op, along);
  const auto tiles = [](std::int64_t rows) {
    return static_cast<unsigned>((rows + kKept - 1) / kKept);
  };
  const auto batch = static_cast<unsigned>(op.dims.batch);
  const auto start = [&](auto kernel, std::int64_t rows, std::int64_t heads) {
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tiles<D>::kBytes),
        "shared memory of flash attention");
    kernel<<<dim3(tiles(rows), static_cast<unsigned>(heads), batch), kThreads, Tiles<D>::kBytes,
             state.stream>>>(args);
  };
  start(flash_dq_kernel<T, D>, op.dims.seq, op.dims.heads);
  start(flash_dkv_kernel<T, D>, key_count(op.dims), op.dims.kv_heads);
}

template <class T>
void launch_for_dim(const FlashBackward& op, float* along, const CudaState& state) {
  if (op.dims.head_dim <= 64) {
    launch<T, 64>(op, along, state);
  } else {
    launch<T, 128>(op, along, state);
  }
}

}  // namespace

void compute(const FlashBackward& op, CudaState& state) {
  const AttentionDims& d = op.dims;
  auto* along = state.scratch.array<float>(d.batch * d.heads * d.seq);
  flash_along(op, along, state);
  if (!is_plainly_causal(op) ||
      !suits_tensor_cores(d, {&op.q, &op.k, &op.v, &op.d_o, &op.dq, &op.dk, &op.dv})) {
    flash_backward_plainly(op, along, state);
  } else if (op.q.tensor.dtype() == DType::kBFloat16) {
    launch_for_dim<__nv_bfloat16>(op, along, state);
  } else {
    launch_for_dim<__half>(op, along, state);
  }
}

}  // namespace tpsim
