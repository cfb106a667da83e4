// What the kernels of flash attention's backward share: a block keeps the keys of one head, sums up
// their dk and dv, and meets the tiles of queries that see them; dq is summed over blocks in global
// memory, in the order of their keys, so that the same values give the same bits.
//
// Blocks draw their work in the order of item_of(): for one query, blocks of earlier keys come
// first. Whoever waits for a sum waits for a block that has begun.
#pragma once

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/flash_memory.h"

namespace tpsim {

inline constexpr int kTileQueries = kFlashQueries;

struct DqSums {
  int* next;     // how many blocks have begun
  int* turns;    // [batch * heads][tiles of queries][warps]: blocks of keys that have added
  float4* sums;  // [slots * group][tiles of queries][warps][pieces][lane]
  int slots;
  int heads_of_keys;  // of all samples
  int key_blocks;
};

inline DqSums dq_sums(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
                      int keys_of_block) {
  const AttentionDims& d = op.dims;
  auto* const turns = reinterpret_cast<int*>(scratch + memory.turns);
  return {turns + memory.turn_count,
          turns,
          reinterpret_cast<float4*>(scratch + memory.sums),
          static_cast<int>(memory.slots),
          static_cast<int>(d.batch * d.kv_heads),
          static_cast<int>((key_count(d) + keys_of_block - 1) / keys_of_block)};
}

// What a block does: one block of keys of one head. In shared memory, as registers are few.
struct Item {
  int key_block, first_key;
  int head;  // sample * kv_heads + kv_head
  int sample, kv_head;
  int query_tiles;
  int tiles_met;  // the last ones; queries of earlier tiles see none of the block's keys
};
// As many heads at a time as have room for their sums; of these the longest rows of work first.
__device__ inline Item item_of(int n, const DqSums& w, const FlashSizes& s, int keys_of_block) {
  const int at_a_time = w.slots * w.key_blocks;
  const int first = n / at_a_time * w.slots;
  const int heads = min(w.slots, w.heads_of_keys - first);
  Item item{};
  item.key_block = n % at_a_time / heads;
  item.first_key = item.key_block * keys_of_block;
  item.head = first + n % at_a_time % heads;
  item.sample = item.head / s.kv_heads;
  item.kv_head = item.head % s.kv_heads;
  item.query_tiles = (s.seq + kTileQueries - 1) / kTileQueries;
  item.tiles_met = item.query_tiles - max(item.first_key - s.earlier(), 0) / kTileQueries;
  return item;
}

// A block of kKeys keys; a step is one tile of queries.
template <class T, int kKeys>
class KeyBlock {
 public:
  // By all threads; `item` is shared.
  __device__ KeyBlock(const FlashBackwardArgs<T>& a, const DqSums& w, Item& item)
      : a_(a), w_(w), item_(item) {
    if (threadIdx.x == 0) item = item_of(next_number(w.next), w, a.sizes, kKeys);
    __syncthreads();
  }

  __device__ int steps() const { return item_.tiles_met * a_.sizes.group(); }

 protected:
  // From the last queries to the first ones that see the keys, head by head.
  __device__ int tile_of(int step) const { return item_.query_tiles - 1 - step % item_.tiles_met; }
  __device__ int first_query(int step) const { return tile_of(step) * kTileQueries; }
  __device__ int head_of(int step) const {
    return item_.kv_head * a_.sizes.group() + step / item_.tiles_met;
  }

  // Starts copying log_sum of a step's queries to `to`, and o . d_o behind.
  __device__ void fetch_numbers(int step, float* to) const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread >= 2 * kTileQueries) return;
    const int query = first_query(step) + thread % kTileQueries;
    const float* const of_head =
        (thread < kTileQueries ? a_.log_sum : a_.along) + a_.sizes.row(item_.sample, head_of(step));
    const bool present = query < a_.sizes.seq;
    copy_word_async(to + thread, present ? of_head + query : of_head, present);
  }

  // Adds the part of the tile's dq that `thread`'s warp has to those of earlier blocks of keys, one
  // of kWarps equal parts. The first block needs the room of a head that was summed up before; the
  // last one, whose keys no later query of the tile sees, gives the sum to `store`.
  template <int kWarps, int N, class Store>
  __device__ void add_in_turn(int step, int thread, float (&dq)[N][4], Store store) const {
    const FlashSizes& s = a_.sizes;
    const int tile = tile_of(step), in_group = step / item_.tiles_met;
    const int adding =  // blocks of keys
        min((first_query(step) + kTileQueries - 1 + s.earlier()) / kKeys + 1, w_.key_blocks);
    const auto place_of = [&](int head_of_keys) {  // the warp's, of all
      return ((head_of_keys * s.group() + in_group) * item_.query_tiles + tile) * kWarps +
             thread / 32;
    };
    float4* const sums =
        w_.sums + std::int64_t{place_of(item_.head % w_.slots)} * (N * 32) + thread % 32;
    if (item_.key_block > 0) {
      wait_for_turn(w_.turns + place_of(item_.head), item_.key_block);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const float4 before = load_beyond_l1(sums + n * 32);
        dq[n][0] += before.x;
        dq[n][1] += before.y;
        dq[n][2] += before.z;
        dq[n][3] += before.w;
      }
    } else if (item_.head >= w_.slots) {
      wait_for_turn(w_.turns + place_of(item_.head - w_.slots), adding);
    }
    if (item_.key_block + 1 < adding) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        store_beyond_l1(sums + n * 32, {dq[n][0], dq[n][1], dq[n][2], dq[n][3]});
      }
    } else {
      store();
    }
    end_turn(w_.turns + place_of(item_.head), item_.key_block + 1);
  }

  const FlashBackwardArgs<T>& a_;
  const DqSums& w_;
  const Item& item_;
};

}  // namespace tpsim
