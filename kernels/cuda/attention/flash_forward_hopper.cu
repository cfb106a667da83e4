// Flash attention forward with Hopper warpgroups (after Shah et al. 2024, "FlashAttention-3"). Each
// of two warpgroups processes 64 queries and iterates over tiles of visible keys. The GEMM of one
// tile's probabilities with its values overlaps with the softmax of the next tile. Keys and values
// are double-buffered in shared memory. For sm_90a only.
//
// All threads copy tiles with cp.async. Unlike TMA, cp.async reads strided heads without a
// descriptor from the host and without a producer warp.
#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/flash_softmax.cuh"
#include "kernels/cuda/attention/hopper_tiles.cuh"
#include "kernels/cuda/attention/warpgroups.h"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/flash_schedule.h"

namespace tpsim {
namespace {

constexpr int kThreads = kTwoWarpgroups;
constexpr int kRows = 64;               // per warpgroup
constexpr int kQueries = kThreads / 2;  // per block
constexpr int kKeys = 128;              // per tile
constexpr int kStages = 2;

template <int D>
struct Tiles {
  static constexpr int kChunks = D / kChunk;
  static constexpr int kBytes = (kQueries + 2 * kStages * kKeys) * D * 2 + kPanelAlignment;
  uint4* shared;
  __device__ uint4* queries() const { return shared; }
  __device__ uint4* keys(int tile) const { return stage(tile % kStages); }
  __device__ uint4* values(int tile) const { return stage(kStages + tile % kStages); }

 private:
  __device__ uint4* stage(int n) const { return shared + (kQueries + n * kKeys) * kChunks; }
};

// Copies keys and values of a head, tile by tile.
template <class T, int D>
struct Source {
  const Tiles<D> tiles;
  const FlashForwardArgs<T>& a;
  const T *keys, *values;

  __device__ void fetch_keys(int tile) const {
    fetch_panels<T, D, kKeys>(tiles.keys(tile), keys, a.k.position, tile * kKeys, a.sizes.keys,
                              a.sizes.head_dim);
  }
  __device__ void fetch_values(int tile) const {
    fetch_panels<T, D, kKeys>(tiles.values(tile), values, a.v.position, tile * kKeys, a.sizes.keys,
                              a.sizes.head_dim);
  }
};

// Starts scores = the warpgroup's queries times the transposed keys.
template <class T, int D>
__device__ inline void start_scores(float (&scores)[1][kKeys / 8][4], std::uint64_t queries,
                                    const uint4* keys) {
  const std::uint64_t of_keys = matrix_descriptor(shared_address(keys), 16);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    multiply_rows(scores[0], moved(queries, step_along_rows(k, kQueries)),
                  moved(of_keys, step_along_rows(k, kKeys)), k > 0, T{});
  }
  commit_products();
}

// Starts out += probabilities times values.
template <class T, int D>
__device__ inline void start_sums(float (&out)[1][D / 8][4],
                                  const unsigned (&probs)[kKeys / 16][1][4], const uint4* values) {
  const std::uint64_t of_values = matrix_descriptor(shared_address(values), kKeys * kPanelRowBytes);
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    multiply_depth(out[0], probs[k][0], moved(of_values, k * 16 * kPanelRowBytes), T{});
  }
  commit_products();
}

template <class T>
__device__ inline void take_probs(const float (&scores)[1][kKeys / 8][4],
                                  unsigned (&probs)[kKeys / 16][1][4]) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) take_as_left<T, 1, kKeys>(scores, k, probs[k]);
}

// Grid: (heads of all samples, tiles of queries).
template <class T, int D>
__global__ void __launch_bounds__(kThreads, 1)
    flash_forward_hopper_kernel(const FlashForwardArgs<T> a) {
  extern __shared__ __align__(1024) uint4 shared[];
  const Tiles<D> tiles{aligned_tiles(shared)};
  const FlashSizes s = a.sizes;
  const int head = static_cast<int>(blockIdx.x) % s.heads;
  const int sample = static_cast<int>(blockIdx.x) / s.heads;
  const int block_row =
      forward_tile(static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y)) * kQueries;
  const int group_row = static_cast<int>(threadIdx.x) / 128 * kRows;
  const int first_row = block_row + static_cast<int>(threadIdx.x) / 32 * 16;
  const int last_seen = first_row + s.earlier();
  const int count = (min(block_row + kQueries + s.earlier(), s.keys) + kKeys - 1) / kKeys;
  const int kv_head = head / s.group();
  const Source<T, D> source{tiles, a, a.k.at(sample, kv_head), a.v.at(sample, kv_head)};
  const float scale2 = s.scale * kLog2E;
  const float slope2 = (a.slopes != nullptr ? a.slopes[head] : 0.0F) * kLog2E;
  fetch_panels<T, D, kQueries>(tiles.queries(), a.q.at(sample, head), a.q.position, block_row,
                               s.seq, s.head_dim);
  source.fetch_keys(0);
  commit_copies();
  float scores[1][kKeys / 8][4], out[1][D / 8][4] = {}, shrink[1][2];
  unsigned probs[kKeys / 16][1][4];
  Running running[1][2];
  const std::uint64_t queries = matrix_descriptor(
      shared_address(tiles.queries()) + static_cast<unsigned>(group_row * kPanelRowBytes), 16);
  meet_tiles();
  if (count > 1) source.fetch_keys(1);
  source.fetch_values(0);
  commit_copies();
  begin_products();
  start_scores<T, D>(scores, queries, tiles.keys(0));
  wait_for_products<0>();
  take_sums(scores[0]);
  softmax_tile<1, kKeys>(scores, shrink, running, last_seen, 0, scale2, slope2);
  take_probs<T>(scores, probs);
  for (int tile = 0; tile + 1 < count; ++tile) {
    meet_tiles();
    if (tile + 2 < count) source.fetch_keys(tile + 2);
    source.fetch_values(tile + 1);
    commit_copies();
    begin_products();
    start_scores<T, D>(scores, queries, tiles.keys(tile + 1));
    start_sums<T, D>(out, probs, tiles.values(tile));
    wait_for_products<1>();
    take_sums(scores[0]);
    softmax_tile<1, kKeys>(scores, shrink, running, last_seen, (tile + 1) * kKeys, scale2, slope2);
    wait_for_products<0>();
    take_sums(out[0]);
    shrink_sums<D, 1>(out, shrink);
    take_probs<T>(scores, probs);
  }
  meet_tiles();
  begin_products();
  start_sums<T, D>(out, probs, tiles.values(count - 1));
  wait_for_products<0>();
  take_sums(out[0]);
  store_rows<T, D, 1>(a, out, running, sample, head, first_row);
}

template <class T, int D>
void launch(const FlashForward& op, const CudaState& state) {
  const auto kernel = flash_forward_hopper_kernel<T, D>;
  check_cuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tiles<D>::kBytes),
      "shared memory of flash attention");
  const dim3 grid(static_cast<unsigned>(op.dims.heads * op.dims.batch),
                  static_cast<unsigned>((op.dims.seq + kQueries - 1) / kQueries));
  kernel<<<grid, kThreads, Tiles<D>::kBytes, state.stream>>>(forward_args<T>(op));
}

}  // namespace

bool has_warpgroup_kernels() { return true; }

void flash_forward_by_warpgroups(const FlashForward& op, const CudaState& state) {
  with_tiles(op.q.tensor.dtype(), op.dims.head_dim, [&](auto type, auto columns) {
    launch<typename decltype(type)::type, columns.value>(op, state);
  });
}

}  // namespace tpsim
