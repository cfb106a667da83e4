// Flash attention forward on tensor cores (after Dao 2023, "FlashAttention-2"). A thread block of
// four warps processes kRows queries and iterates over tiles of visible keys, with a running
// maximum and sum per query. The copy of a tile of values overlaps with the GEMM of the keys, and
// the copy of the next keys with the GEMM of the values.
#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/flash_paths.h"
#include "kernels/cuda/attention/flash_softmax.cuh"
#include "kernels/cuda/attention/warpgroups.h"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"
#include "kernels/cuda/tiles/packs.cuh"
#include "kernels/flash_schedule.h"

namespace tpsim {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
template <int kM>
constexpr int kRows = kWarps * 16 * kM;
// Keys per tile. The 255 registers of a thread must hold scores and outputs.
template <int D>
constexpr int kKeysOf = D > 64 ? 32 : 64;

// Grid: (heads of all samples, tiles of queries).
template <class T, int D, int kM>
__global__ void __launch_bounds__(kThreads) flash_forward_kernel(const FlashForwardArgs<T> a) {
  extern __shared__ __align__(256) uint4 tiles[];
  constexpr int kChunks = D / kChunk, kKeys = kKeysOf<D>;
  uint4* const q_tile = tiles;
  uint4* const k_tile = q_tile + kRows<kM> * kChunks;
  uint4* const v_tile = k_tile + kKeys * kChunks;
  const FlashSizes s = a.sizes;
  const int head = static_cast<int>(blockIdx.x) % s.heads;
  const int sample = static_cast<int>(blockIdx.x) / s.heads;
  const int block_row =
      forward_tile(static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y)) * kRows<kM>;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16 * kM;
  const int first_row = block_row + warp_row;
  const T* const keys = a.k.at(sample, head / s.group());
  const T* const values = a.v.at(sample, head / s.group());
  const float slope = a.slopes != nullptr ? a.slopes[head] : 0.0F;

  fetch_tile<T, D, kRows<kM>, kThreads>(q_tile, a.q.at(sample, head), a.q.position, block_row,
                                        s.seq, s.head_dim);
  fetch_tile<T, D, kKeys, kThreads>(k_tile, keys, a.k.position, 0, s.keys, s.head_dim);
  commit_copies();

  float out[kM][D / 8][4] = {};
  Running running[kM][2];
  const int last_seen = first_row + s.earlier();
  // End of the keys that some query of the block sees.
  const int end = min(block_row + kRows<kM> + s.earlier(), s.keys);
  for (int first_key = 0; first_key < end; first_key += kKeys) {
    wait_for_copies<0>();
    __syncthreads();  // the keys have arrived, and the previous values are no longer read
    fetch_tile<T, D, kKeys, kThreads>(v_tile, values, a.v.position, first_key, s.keys, s.head_dim);
    commit_copies();
    const bool sees = first_key <= last_seen + 16 * kM - 1;  // this warp sees some of these keys
    float scores[kM][kKeys / 8][4] = {};
    if (sees) add_product_by_column<T, D, kM, kKeys>(scores, q_tile, warp_row, k_tile);
    __syncthreads();  // the keys are no longer read
    if (first_key + kKeys < end) {
      fetch_tile<T, D, kKeys, kThreads>(k_tile, keys, a.k.position, first_key + kKeys, s.keys,
                                        s.head_dim);
    }
    commit_copies();
    if (sees) {
      float shrink[kM][2];
      softmax_tile<kM, kKeys>(scores, shrink, running, last_seen, first_key, s.scale * kLog2E,
                              slope * kLog2E);
      shrink_sums<D, kM>(out, shrink);
    }
    wait_for_copies<1>();
    __syncthreads();  // the values have arrived
    if (sees) add_product_by_depth<T, D, kM, kKeys>(out, scores, v_tile);
  }

  store_rows<T, D, kM>(a, out, running, sample, head, first_row);
}

template <class T, int D>
void launch(const FlashForward& op, const CudaState& state) {
  constexpr int kM = 2;
  constexpr int kShared = (kRows<kM> + 2 * kKeysOf<D>)*D * 2;
  const auto kernel = flash_forward_kernel<T, D, kM>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
             "shared memory of flash attention");
  const dim3 grid(static_cast<unsigned>(op.dims.heads * op.dims.batch),
                  static_cast<unsigned>((op.dims.seq + kRows<kM> - 1) / kRows<kM>));
  kernel<<<grid, kThreads, kShared, state.stream>>>(forward_args<T>(op));
}

}  // namespace

void compute(const FlashForward& op, CudaState& state) {
  if (!is_plainly_causal(op) || !suits_tensor_cores(op.dims, {&op.q, &op.k, &op.v, &op.o})) {
    flash_forward_plainly(op, state);
  } else if (state.limits.uses_warpgroups) {
    flash_forward_by_warpgroups(op, state);
  } else {
    with_tiles(op.q.tensor.dtype(), op.dims.head_dim, [&](auto type, auto columns) {
      launch<typename decltype(type)::type, columns.value>(op, state);
    });
  }
}

}  // namespace tpsim
