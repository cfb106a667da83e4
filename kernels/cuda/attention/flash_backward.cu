// Flash attention backward on tensor cores, in one kernel with five GEMMs (after Dao 2023,
// "FlashAttention-2"). A thread block processes one key block (flash_turns.cuh) and keeps its dk
// and dv in registers.
//
// Warp (k, q) computes the probabilities [key][query] of 32 keys and of one half (32) of the tile's
// queries. It accumulates dk and dv of its keys for one half of the columns, and dq of its queries
// for a part of the columns. Warps exchange probabilities and score gradients through shared
// memory.
#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/flash_paths.h"
#include "kernels/cuda/attention/flash_turns.cuh"
#include "kernels/cuda/attention/warpgroups.h"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {
namespace {

constexpr int kQueries = kTileQueries;
constexpr int kHalf = kQueries / 2;  // queries of a warp (half a tile), and keys of a warp
constexpr int kStaticBytes = 256;    // static shared memory, as rounded by ptxas
constexpr int kPairChunks = kQueries / kChunk;

// kTurns: number of buffers for a tile of q and d_o. With two, copies overlap with the GEMMs.
template <int kD, int kKeysKept, int kTurnsOfTiles>
struct Shape {
  static constexpr int D = kD, kKeys = kKeysKept, kTurns = kTurnsOfTiles;
  static constexpr int kWarps = 2 * kKeys / kHalf, kThreads = kWarps * 32;
  static constexpr int kColumns = D / 2;                           // columns of dk and dv per warp
  static constexpr int kDqColumns = D / 4, kDqParts = 8 / kWarps;  // columns of dq per warp
  static constexpr int kChunks = D / kChunk;
  static constexpr int kTileBytes =
      (2 * kKeys + 2 * kTurns * kQueries) * D * 2 + 2 * kKeys * kQueries * 2;
  static constexpr int kBytes = kTileBytes + kTurns * 2 * kQueries * 4;
};

template <class S>
struct Tiles {
  uint4* shared;
  __device__ uint4* keys() const { return shared; }
  __device__ uint4* values() const { return shared + S::kKeys * S::kChunks; }
  __device__ uint4* met(int which, int turn) const {
    return shared + (2 * S::kKeys + (2 * turn + which) * kQueries) * S::kChunks;
  }
  // Tile of probabilities (0) or of score gradients (1), [key][query].
  __device__ uint4* pairs(int which) const {
    return met(0, S::kTurns) + which * S::kKeys * kPairChunks;
  }
  // log_sum (0) or o . d_o (1) of the tile's queries.
  __device__ float* numbers(int which, int turn) const {
    return reinterpret_cast<float*>(pairs(2)) + (2 * turn + which) * kQueries;
  }
};

template <class T, class S>
class Backward : public KeyBlock<T, S::kKeys> {
  using Base = KeyBlock<T, S::kKeys>;
  using Base::a_, Base::w_;
  using Base::at, Base::item;

 public:
  __device__ Backward(const FlashBackwardArgs<T>& a, const SharedSums& w, BlockWork& block_work,
                      uint4* shared)
      : Base(a, w, block_work), tiles_{shared} {}

  __device__ void fetch_keys() const {
    const FlashSizes& s = a_.sizes;
    fetch_tile<T, S::D, S::kKeys, S::kThreads>(tiles_.keys(),
                                               a_.k.at(item().sample, this->kv_head()),
                                               a_.k.position, item().first_key, s.keys, s.head_dim);
    fetch_tile<T, S::D, S::kKeys, S::kThreads>(tiles_.values(),
                                               a_.v.at(item().sample, this->kv_head()),
                                               a_.v.position, item().first_key, s.keys, s.head_dim);
  }

  __device__ void fetch(int step) const {
    const FlashSizes& s = a_.sizes;
    const FlashStep now = this->begin_step(step);
    const int head = now.head, first = now.first_query, turn = step % S::kTurns;
    fetch_tile<T, S::D, kQueries, S::kThreads>(tiles_.met(0, turn), a_.q.at(item().sample, head),
                                               a_.q.position, first, s.seq, s.head_dim);
    fetch_tile<T, S::D, kQueries, S::kThreads>(tiles_.met(1, turn), a_.d_o.at(item().sample, head),
                                               a_.d_o.position, first, s.seq, s.head_dim);
    this->fetch_numbers(now, tiles_.numbers(0, turn));
    commit_copies();
  }

  // Processes one tile of queries. A block barrier precedes the use of other warps' results.
  __device__ void meet(int step) {
    thread_ = thread_now();
    const int turn = step % S::kTurns;
    const uint4 *const q = tiles_.met(0, turn), *const d_o = tiles_.met(1, turn);
    if (sees_keys(step, query_warp())) {
      float probs[2][kHalf / 8][4] = {}, slopes[2][kHalf / 8][4] = {};
      const int own = query_warp() * kHalf * S::kChunks;
      add_product_by_column<T, S::D, 2, kHalf>(probs, tiles_.keys(), key_row(), q + own);
      take_probs(step, probs);
      add_product_by_column<T, S::D, 2, kHalf>(slopes, tiles_.values(), key_row(), d_o + own);
      take_slopes(step, probs, slopes);
      put(probs, tiles_.pairs(0));
      put(slopes, tiles_.pairs(1));
      add_own(dv_, probs, d_o);
      add_own(dk_, slopes, q);
    }
    thread_ = thread_now();
    __syncthreads();  // probabilities and score gradients of all warps are written
    if (sees_keys(step, 1 - query_warp())) {
      add_other(dv_, tiles_.pairs(0), d_o);
      add_other(dk_, tiles_.pairs(1), q);
    }
#pragma unroll 1
    for (int part = 0; part < S::kDqParts; ++part) add_dq(step, part);
  }

  __device__ void store() const {
    const int column = query_warp() * S::kColumns;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const int first = item().first_key + key_row() + m * 16;
      this->template store_keys<S::kColumns>(dk_[m], a_.sizes.scale, a_.dk, w_.dk_parts, first,
                                             column);
      this->template store_keys<S::kColumns>(dv_[m], 1.0F, a_.dv, w_.dv_parts, first, column);
    }
  }

 private:
  using Scores = float[2][kHalf / 8][4];          // [key][query]
  using Gradient = float[2][S::kColumns / 8][4];  // [key][column]
  using Dq = float[2][S::kDqColumns / 8][4];      // [query][column]

  __device__ int lane() const { return thread_ % 32; }
  __device__ int warp() const { return thread_ / 32; }
  __device__ int query_warp() const { return warp() % 2; }
  __device__ int key_row() const { return warp() / 2 * kHalf; }

  // Returns the last key that a half of the tile's queries sees, counted from the block's first
  // key.
  __device__ int last_seen(int step, int half) const {
    return at(step).first_query + half * kHalf + kHalf - 1 + a_.sizes.earlier() - item().first_key;
  }
  __device__ bool sees_keys(int step, int half) const { return key_row() <= last_seen(step, half); }

  // Replaces scores by probabilities.
  __device__ void take_probs(int step, Scores& probs) const {
    const FlashSizes& s = a_.sizes;
    const float* const log_sums = tiles_.numbers(0, step % S::kTurns) + query_warp() * kHalf;
    const float slope2 = (a_.slopes != nullptr ? a_.slopes[at(step).head] : 0.0F) * kLog2E;
    const float scale2 = s.scale * kLog2E;
    const int first = at(step).first_query + query_warp() * kHalf;
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int at = n * 8 + result_col(lane(), side);
        const int last = first + at < s.seq ? first + at + s.earlier() : -1;
        const float log_sum2 = log_sums[at] * kLog2E;
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int i = side; i < 4; i += 2) {
            const int key = item().first_key + key_row() + m * 16 + result_row(lane(), i);
            const float score2 = scale2 * probs[m][n][i] + slope2 * static_cast<float>(key);
            probs[m][n][i] = key <= last ? exp2_fast(score2 - log_sum2) : 0.0F;
          }
        }
      }
    }
  }

  // Replaces gradients of probabilities by gradients of the scaled scores.
  __device__ void take_slopes(int step, const Scores& probs, Scores& slopes) const {
    const float* const alongs = tiles_.numbers(1, step % S::kTurns) + query_warp() * kHalf;
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const float along = alongs[n * 8 + result_col(lane(), side)];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int i = side; i < 4; i += 2)
            slopes[m][n][i] = probs[m][n][i] * (slopes[m][n][i] - along);
        }
      }
    }
  }

  // Writes the warp's probabilities or score gradients to `pairs` in shared memory.
  __device__ void put(const Scores& own, uint4* pairs) const {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int n = 0; n < kHalf / 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = key_row() + m * 16 + result_row(lane(), 2 * half);
          const int chunk = query_warp() * (kHalf / kChunk) + n;
          auto* const to = reinterpret_cast<unsigned*>(pairs + swizzled(row, chunk, kPairChunks));
          to[lane() % 4] = packed(own[m][n][2 * half], own[m][n][2 * half + 1], T{});
        }
      }
    }
  }

  // Returns the shared-memory address that this lane passes to ldmatrix.trans: 16 rows from `row`
  // and the columns of this warp, of a query tile.
  __device__ unsigned place_in_met(const uint4* tile, int row) const {
    const TilePlace of_b = b_source_by_depth(lane());
    return place_address<S::D>(tile, row + of_b.row,
                               query_warp() * (S::kColumns / kChunk) + of_b.chunk);
  }

  // sums += the warp's probabilities (or score gradients) times its queries' rows of d_o (or q).
  __device__ void add_own(Gradient& sums, const Scores& own, const uint4* tile) const {
    const unsigned place = place_in_met(tile, query_warp() * kHalf);
#pragma unroll
    for (int k = 0; k < kHalf / 16; ++k) {
      unsigned left[2][4];
      take_as_left<T, 2, kHalf>(own, k, left);
      add_step_by_depth<T, 2, S::kColumns>(sums, left, place + k * 16 * S::D * 2);
    }
  }
  // As add_own() for the other half of the queries. `pairs` was written by another warp.
  __device__ void add_other(Gradient& sums, const uint4* pairs, const uint4* tile) const {
    const int half = 1 - query_warp();
    const TilePlace of_a = a_source(lane());
    const unsigned a_place =
        place_address<kQueries>(pairs, key_row() + of_a.row, half * (kHalf / kChunk) + of_a.chunk);
    const unsigned place = place_in_met(tile, half * kHalf);
#pragma unroll
    for (int k = 0; k < kHalf / 16; ++k) {
      unsigned left[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        load_fragments((a_place ^ (k * 32)) + m * 16 * kQueries * 2, left[m]);
      }
      add_step_by_depth<T, 2, S::kColumns>(sums, left, place + k * 16 * S::D * 2);
    }
  }

  // Computes this key block's part of dq, for the warp's queries and a part of the columns, and
  // adds it to the sum of earlier key blocks.
  __device__ void add_dq(int step, int part) const {
    const int columns = (part * S::kWarps + warp()) / 2 * S::kDqColumns;
    float dq[2][S::kDqColumns / 8][4] = {};
    const TilePlace of_a = a_source_by_depth(lane()), of_b = b_source_by_depth(lane());
    const unsigned a_place = place_address<kQueries>(tiles_.pairs(1), of_a.row,
                                                     query_warp() * (kHalf / kChunk) + of_a.chunk);
    const unsigned b_place =
        place_address<S::D>(tiles_.keys(), of_b.row, columns / kChunk + of_b.chunk);
    const int end = min(S::kKeys, last_seen(step, query_warp()) + 1);
#pragma unroll 2
    for (int key = 0; key < end; key += 16) {
      unsigned left[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        load_fragments_transposed((a_place ^ (m * 32)) + key * kQueries * 2, left[m]);
      }
      add_step_by_depth<T, 2, S::kDqColumns>(dq, left, b_place + key * S::D * 2);
    }
    constexpr int kPieces = 2 * S::kDqColumns / 8;
    const int thread = part * S::kThreads + thread_;
    wait_for_turn(this->template awaited_turn<S::kDqParts * S::kWarps>(step, thread));
    this->template add_in_turn<S::kDqParts * S::kWarps>(step, thread,
                                                        reinterpret_cast<float(&)[kPieces][4]>(dq),
                                                        [&] { store_dq(step, columns, dq); });
    this->template pass_turn<S::kDqParts * S::kWarps>(step, thread);
  }

  __device__ void store_dq(int step, int column, const Dq& dq) const {
    const FlashSizes& s = a_.sizes;
    const float scale[2] = {s.scale, s.scale};
    const HeadExtent extent{s.seq, s.head_dim - column};
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      store_result<T, S::kDqColumns>(dq[m], scale, a_.dq.at(item().sample, at(step).head) + column,
                                     a_.dq.position,
                                     at(step).first_query + query_warp() * kHalf + m * 16, extent);
    }
  }

  Tiles<S> tiles_;
  int thread_ = thread_now();
  Gradient dk_ = {}, dv_ = {};
};

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    flash_backward_kernel(const FlashBackwardArgs<T> a, const SharedSums w) {
  extern __shared__ __align__(256) uint4 shared[];
  __shared__ BlockWork block_work;
  Backward<T, S> work(a, w, block_work, shared);
  work.fetch_keys();
  work.fetch(0);
  for (int step = 0; step < work.steps(); ++step) {
    wait_for_copies<0>();
    __syncthreads();  // this tile has arrived, and the previous one is no longer read
    if (S::kTurns > 1 && step + 1 < work.steps()) work.fetch(step + 1);
    work.meet(step);
    if (S::kTurns > 1 || step + 1 == work.steps()) continue;
    __syncthreads();  // this tile is no longer read
    work.fetch(step + 1);
  }
  work.store();
}

template <class T, class S>
void launch(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
            const CudaState& state) {
  const SharedSums work = shared_sums(op, memory, scratch, S::kKeys);
  const auto kernel = flash_backward_kernel<T, S>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes),
             "shared memory of flash attention");
  kernel<<<static_cast<unsigned>(work.schedule.items()), S::kThreads, S::kBytes, state.stream>>>(
      backward_args<T>(op, reinterpret_cast<float*>(scratch)), work);
  add_parts(op, work, state);
}

template <class T>
void launch_for_dim(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
                    const CudaState& state) {
  using Wide = Shape<128, 128, 2>;
  if (op.dims.head_dim <= 64) {
    launch<T, Shape<64, 128, 2>>(op, memory, scratch, state);
  } else if (state.limits.shared_memory >= Wide::kBytes + kStaticBytes) {
    launch<T, Wide>(op, memory, scratch, state);
  } else {
    launch<T, Shape<128, 64, 1>>(op, memory, scratch, state);  // 99 KiB: GeForce, L4, L40
  }
}

// Returns whether the numbers of thread blocks and counters fit in 32 bits.
bool is_countable(const FlashBackward& op, const FlashMemory& memory) {
  return memory.turn_count < (std::int64_t{1} << 31) - 1 &&
         op.dims.batch * op.dims.heads * (key_count(op.dims) / 64 + 1) < std::int64_t{1} << 31;
}

}  // namespace

void compute(const FlashBackward& op, CudaState& state) {
  const AttentionDims& d = op.dims;
  const FlashMemory memory = flash_backward_memory(d);
  if (!is_plainly_causal(op) || !is_countable(op, memory) ||
      !suits_tensor_cores(d, {&op.q, &op.k, &op.v, &op.d_o, &op.dq, &op.dk, &op.dv})) {
    auto* const along = state.scratch.array<float>(d.batch * d.heads * d.seq);
    flash_along(op, along, {}, state);
    flash_backward_plainly(op, along, state);
    return;
  }
  auto* const scratch = static_cast<std::byte*>(state.scratch.bytes(memory.bytes));
  flash_along(op, reinterpret_cast<float*>(scratch),
              {reinterpret_cast<int*>(scratch + memory.turns), memory.turn_count + 1}, state);
  if (state.limits.uses_warpgroups && d.head_dim > 64) {
    flash_backward_by_warpgroups(op, memory, scratch, state);
    return;
  }
  with_half_type(op.q.tensor.dtype(), [&](auto type) {
    launch_for_dim<typename decltype(type)::type>(op, memory, scratch, state);
  });
}

}  // namespace tpsim
