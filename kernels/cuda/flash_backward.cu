// Flash attention backward on tensor cores, in one kernel and five products (after Dao 2023,
// "FlashAttention-2"): a block keeps kKeys keys, whose dk and dv it sums up in registers, and meets
// the queries that see them tile by tile. dq is summed over blocks in memory that stays in the L2
// cache, in the order of their keys, so that the same values give the same bits.
//
// Warps stand in two columns: warp (k, q) computes probabilities [key][query] of 32 keys and 32
// queries of the tile, keeps one half of the columns of these keys' dk and dv, and sums up dq of
// its 32 queries for its share of the columns. What it needs of the others' probabilities and
// slopes passes through shared memory.
//
// Blocks draw their work in the order of item_of(): for one query, blocks of earlier keys come
// first. Whoever waits for a sum waits for a block that has begun.
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/flash.cuh"
#include "kernels/cuda/flash_paths.h"
#include "kernels/cuda/packs.cuh"
#include "kernels/flash_memory.h"

namespace tpsim {
namespace {

constexpr int kQueries = kFlashQueries;
constexpr int kHalf = kQueries / 2;  // of a tile: a warp's queries, and as many keys
constexpr int kStaticBytes = 256;    // of shared memory, as ptxas rounds them
constexpr int kPairChunks = kQueries / kChunk;

// kTurns: pairs of tiles of queries, one of which arrives while another is multiplied.
template <int kD, int kKeysKept, int kTurnsOfTiles>
struct Shape {
  static constexpr int D = kD, kKeys = kKeysKept, kTurns = kTurnsOfTiles;
  static constexpr int kWarps = 2 * kKeys / kHalf, kThreads = kWarps * 32;
  static constexpr int kColumns = D / 2;                // of dk and dv, a warp's
  static constexpr int kDqColumns = D * kHalf / kKeys;  // of dq, a warp's
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
  // Probabilities or their slopes, [key][query].
  __device__ uint4* pairs(int which) const {
    return met(0, S::kTurns) + which * S::kKeys * kPairChunks;
  }
  // log_sum and o . d_o of the queries.
  __device__ float* numbers(int which, int turn) const {
    return reinterpret_cast<float*>(pairs(2)) + (2 * turn + which) * kQueries;
  }
};

struct DqSums {
  int* next;     // how many blocks have begun
  int* turns;    // [batch * heads][tiles of queries][kWarps]: blocks of keys that have added
  float4* sums;  // [slots * group][tiles of queries][kWarps][pieces][lane]
  int slots;
  int heads_of_keys;  // of all samples
  int key_blocks;
};

// What a block does: one block of keys of one head.
struct Item {
  int key_block, head;  // sample * kv_heads + head of keys
};
// As many heads at a time as have room for their sums; of these the longest rows of work first.
__device__ inline Item item_of(int n, const DqSums& w) {
  const int at_a_time = w.slots * w.key_blocks;
  const int first = n / at_a_time * w.slots;
  const int heads = min(w.slots, w.heads_of_keys - first);
  return {n % at_a_time / heads, first + n % at_a_time % heads};
}

template <class T, class S>
class Backward {
 public:
  __device__ Backward(const FlashBackwardArgs<T>& a, const DqSums& w, uint4* shared, int number)
      : a_(a), w_(w), tiles_{shared}, item_(item_of(number, w)) {
    sample_ = item_.head / a.sizes.kv_heads;
    kv_head_ = item_.head % a.sizes.kv_heads;
    first_key_ = item_.key_block * S::kKeys;
    query_tiles_ = (a.sizes.seq + kQueries - 1) / kQueries;
    // Queries of earlier tiles see none of the block's keys.
    tiles_met_ = query_tiles_ - max(first_key_ - a.sizes.earlier(), 0) / kQueries;
  }

  __device__ int steps() const { return tiles_met_ * a_.sizes.group(); }

  __device__ void fetch_keys() const {
    const FlashSizes& s = a_.sizes;
    fetch_tile<T, S::D, S::kKeys, S::kThreads>(tiles_.keys(), a_.k.at(sample_, kv_head_),
                                               a_.k.position, first_key_, s.keys, s.head_dim);
    fetch_tile<T, S::D, S::kKeys, S::kThreads>(tiles_.values(), a_.v.at(sample_, kv_head_),
                                               a_.v.position, first_key_, s.keys, s.head_dim);
  }

  __device__ void fetch(int step) const {
    const FlashSizes& s = a_.sizes;
    const int head = head_of(step), first = first_query(step), turn = step % S::kTurns;
    fetch_tile<T, S::D, kQueries, S::kThreads>(tiles_.met(0, turn), a_.q.at(sample_, head),
                                               a_.q.position, first, s.seq, s.head_dim);
    fetch_tile<T, S::D, kQueries, S::kThreads>(tiles_.met(1, turn), a_.d_o.at(sample_, head),
                                               a_.d_o.position, first, s.seq, s.head_dim);
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < 2 * kQueries) {
      const int which = thread / kQueries, query = first + thread % kQueries;
      const float* const of_head = (which == 0 ? a_.log_sum : a_.along) + s.row(sample_, head);
      const bool present = query < s.seq;
      copy_word_async(tiles_.numbers(which, turn) + thread % kQueries,
                      present ? of_head + query : of_head, present);
    }
    commit_copies();
  }

  // All of one tile of queries; the block's threads meet once in between.
  __device__ void meet(int step) {
    thread_ = thread_now();
    const int turn = step % S::kTurns;
    const uint4 *const q = tiles_.met(0, turn), *const d_o = tiles_.met(1, turn);
    const bool sees_own = sees_keys(step, query_warp());
    if (sees_own) {
      float probs[2][kHalf / 8][4] = {}, slopes[2][kHalf / 8][4] = {};
      const int own = query_warp() * kHalf * S::kChunks;
      add_product_by_column<T, S::D, 2, kHalf>(probs, tiles_.keys(), key_row(), q + own);
      add_product_by_column<T, S::D, 2, kHalf>(slopes, tiles_.values(), key_row(), d_o + own);
      take_slopes(step, probs, slopes);
      put(probs, tiles_.pairs(0));
      put(slopes, tiles_.pairs(1));
      add_own(dv_, probs, d_o);
      add_own(dk_, slopes, q);
    }
    __syncthreads();  // everyone's probabilities and slopes are here
    if (sees_keys(step, 1 - query_warp())) {
      add_other(dv_, tiles_.pairs(0), d_o);
      add_other(dk_, tiles_.pairs(1), q);
    }
    add_dq(step);
  }

  __device__ void store() const {
    const FlashSizes& s = a_.sizes;
    const float one[2] = {1, 1}, scale[2] = {s.scale, s.scale};
    const int column = query_warp() * S::kColumns;
    const HeadExtent extent{s.keys, s.head_dim - column};
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const int first = first_key_ + key_row() + m * 16;
      store_result<T, S::kColumns>(dk_[m], scale, a_.dk.at(sample_, kv_head_) + column,
                                   a_.dk.position, first, extent);
      store_result<T, S::kColumns>(dv_[m], one, a_.dv.at(sample_, kv_head_) + column,
                                   a_.dv.position, first, extent);
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

  // From the last queries to the first ones that see the keys, head by head.
  __device__ int tile_of(int step) const { return query_tiles_ - 1 - step % tiles_met_; }
  __device__ int first_query(int step) const { return tile_of(step) * kQueries; }
  __device__ int head_of(int step) const { return kv_head_ * a_.sizes.group() + step / tiles_met_; }
  // The last key that one half of the tile's queries sees, counted from the block's first.
  __device__ int last_seen(int step, int half) const {
    return first_query(step) + half * kHalf + kHalf - 1 + a_.sizes.earlier() - first_key_;
  }
  __device__ bool sees_keys(int step, int half) const { return key_row() <= last_seen(step, half); }

  // Scores become probabilities, and dprobs slopes of the scaled scores.
  __device__ void take_slopes(int step, Scores& probs, Scores& slopes) const {
    const FlashSizes& s = a_.sizes;
    const int turn = step % S::kTurns, first = query_warp() * kHalf;
    const float slope2 = (a_.slopes != nullptr ? a_.slopes[head_of(step)] : 0.0F) * kLog2E;
    const float scale2 = s.scale * kLog2E;
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int at = first + n * 8 + result_col(lane(), side);
        const int query = first_query(step) + at;
        const int last = query < s.seq ? query + s.earlier() : -1;
        const float log_sum2 = tiles_.numbers(0, turn)[at] * kLog2E;
        const float along = tiles_.numbers(1, turn)[at];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int i = side; i < 4; i += 2) {
            const int key = first_key_ + key_row() + m * 16 + result_row(lane(), i);
            const float score2 = scale2 * probs[m][n][i] + slope2 * static_cast<float>(key);
            const float prob = key <= last ? exp2_fast(score2 - log_sum2) : 0.0F;
            probs[m][n][i] = prob;
            slopes[m][n][i] = prob * (slopes[m][n][i] - along);
          }
        }
      }
    }
  }

  // The warp's part of a tile of pairs.
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

  // The lane's place in 16 rows and the warp's columns of a tile of queries.
  __device__ unsigned place_in_met(const uint4* tile, int row) const {
    const TilePlace of_b = b_source_by_depth(lane());
    return place_address<S::D>(tile, row + of_b.row,
                               query_warp() * (S::kColumns / kChunk) + of_b.chunk);
  }

  // sums += own pairs times the tile's rows of the warp's queries.
  __device__ void add_own(Gradient& sums, const Scores& own, const uint4* tile) const {
    const unsigned place = place_in_met(tile, query_warp() * kHalf);
#pragma unroll
    for (int k = 0; k < kHalf / 16; ++k) {
      unsigned left[2][4];
      take_as_left<T, 2, kHalf>(own, k, left);
      add_step_by_depth<T, 2, S::kColumns>(sums, left, place + k * 16 * S::D * 2);
    }
  }
  // The same for the other half of the queries, whose pairs another warp has put there.
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

  // The block's part of dq of the warp's queries and columns, and the sum with those before it.
  __device__ void add_dq(int step) const {
    float dq[2][S::kDqColumns / 8][4] = {};
    const TilePlace of_a = a_source_by_depth(lane()), of_b = b_source_by_depth(lane());
    const unsigned a_place = place_address<kQueries>(tiles_.pairs(1), of_a.row,
                                                     query_warp() * (kHalf / kChunk) + of_a.chunk);
    const unsigned b_place = place_address<S::D>(
        tiles_.keys(), of_b.row, warp() / 2 * (S::kDqColumns / kChunk) + of_b.chunk);
    const int end = min(S::kKeys, last_seen(step, query_warp()) + 1);
#pragma unroll(S::kDqColumns > 32 ? 1 : 2)
    for (int key = 0; key < end; key += 16) {
      unsigned left[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        load_fragments_transposed((a_place ^ (m * 32)) + key * kQueries * 2, left[m]);
      }
      add_step_by_depth<T, 2, S::kDqColumns>(dq, left, b_place + key * S::D * 2);
    }
    add_in_turn(step, dq);
  }

  __device__ int turn_of(int head, int tile) const {
    return (head * query_tiles_ + tile) * S::kWarps + warp();
  }

  // The first block of keys needs the room of a head that was summed up before; the last one, whose
  // keys no later query of the tile sees, writes dq.
  __device__ void add_in_turn(int step, Dq& dq) const {
    const FlashSizes& s = a_.sizes;
    const int tile = tile_of(step), in_group = step / tiles_met_;
    const int last_key = min(first_query(step) + kQueries - 1 + s.earlier(), s.keys - 1);
    const int adding = last_key / S::kKeys + 1;  // blocks of keys
    int* const own = w_.turns + turn_of(item_.head * s.group() + in_group, tile);
    const int slot = item_.head % w_.slots * s.group() + in_group;
    float4* const sums = w_.sums + std::int64_t{slot * query_tiles_ + tile} * kQueries * S::D / 4 +
                         warp() * (kQueries * S::D / 4 / S::kWarps) + lane();
    if (item_.key_block > 0) {
      wait_for_turn(own, item_.key_block);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < S::kDqColumns / 8; ++n) {
          const float4 before = load_beyond_l1(sums + (m * (S::kDqColumns / 8) + n) * 32);
          dq[m][n][0] += before.x;
          dq[m][n][1] += before.y;
          dq[m][n][2] += before.z;
          dq[m][n][3] += before.w;
        }
      }
    } else if (item_.head >= w_.slots) {
      const int former = (item_.head - w_.slots) * s.group() + in_group;
      wait_for_turn(w_.turns + turn_of(former, tile), adding);
    }
    if (item_.key_block + 1 < adding) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < S::kDqColumns / 8; ++n) {
          store_beyond_l1(sums + (m * (S::kDqColumns / 8) + n) * 32,
                          {dq[m][n][0], dq[m][n][1], dq[m][n][2], dq[m][n][3]});
        }
      }
    } else {
      store_dq(step, dq);
    }
    end_turn(own, item_.key_block + 1);
  }

  __device__ void store_dq(int step, const Dq& dq) const {
    const FlashSizes& s = a_.sizes;
    const float scale[2] = {s.scale, s.scale};
    const int column = warp() / 2 * S::kDqColumns;
    const HeadExtent extent{s.seq, s.head_dim - column};
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      store_result<T, S::kDqColumns>(dq[m], scale, a_.dq.at(sample_, head_of(step)) + column,
                                     a_.dq.position,
                                     first_query(step) + query_warp() * kHalf + m * 16, extent);
    }
  }

  const FlashBackwardArgs<T>& a_;
  const DqSums& w_;
  Tiles<S> tiles_;
  Item item_;
  int sample_, kv_head_, first_key_, query_tiles_, tiles_met_;
  int thread_ = thread_now();
  Gradient dk_ = {}, dv_ = {};
};

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    flash_backward_kernel(const FlashBackwardArgs<T> a, const DqSums w) {
  extern __shared__ __align__(256) uint4 shared[];
  __shared__ int number;
  if (threadIdx.x == 0) number = next_number(w.next);
  __syncthreads();
  Backward<T, S> work(a, w, shared, number);
  work.fetch_keys();
  work.fetch(0);
  for (int step = 0; step < work.steps(); ++step) {
    wait_for_copies<0>();
    __syncthreads();  // this tile is here, and the last one has been used
    if (S::kTurns > 1 && step + 1 < work.steps()) work.fetch(step + 1);
    work.meet(step);
    if (S::kTurns > 1 || step + 1 == work.steps()) continue;
    __syncthreads();  // this tile has been used
    work.fetch(step + 1);
  }
  work.store();
}

template <class T, class S>
void launch(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
            const CudaState& state) {
  const AttentionDims& d = op.dims;
  auto* const turns = reinterpret_cast<int*>(scratch + memory.turns);
  const std::int64_t key_blocks = (key_count(d) + S::kKeys - 1) / S::kKeys;
  const DqSums sums{turns + memory.turn_count,
                    turns,
                    reinterpret_cast<float4*>(scratch + memory.sums),
                    static_cast<int>(memory.slots),
                    static_cast<int>(d.batch * d.kv_heads),
                    static_cast<int>(key_blocks)};
  const auto kernel = flash_backward_kernel<T, S>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes),
             "shared memory of flash attention");
  kernel<<<static_cast<unsigned>(d.batch * d.kv_heads * key_blocks), S::kThreads, S::kBytes,
           state.stream>>>(backward_args<T>(op, reinterpret_cast<float*>(scratch)), sums);
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

// Blocks and turns are counted in 32 bits.
bool is_countable(const FlashBackward& op, const FlashMemory& memory) {
  return memory.turn_count < (std::int64_t{1} << 31) - 1 &&
         op.dims.batch * op.dims.kv_heads * (key_count(op.dims) / 64 + 1) < std::int64_t{1} << 31;
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
  if (op.q.tensor.dtype() == DType::kBFloat16) {
    launch_for_dim<__nv_bfloat16>(op, memory, scratch, state);
  } else {
    launch_for_dim<__half>(op, memory, scratch, state);
  }
}

}  // namespace tpsim
