// Shared parts of the flash attention backward kernels. A thread block processes one key block of
// one unit (flash_schedule.h). It iterates over the tiles of queries that see its keys and
// accumulates dk and dv of its keys. Thread blocks add their parts of dq to global memory in the
// order of their keys, so that results are bit-reproducible.
//
// Thread blocks take work items in the order of item_of(). A thread block therefore only waits for
// thread blocks that have started.
#pragma once

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/flash_memory.h"

namespace tpsim {

inline constexpr int kTileQueries = kFlashQueries;

// Global memory shared by all thread blocks of a backward op.
struct SharedSums {
  FlashSchedule schedule;
  int* next;     // number of blocks that have started
  int* turns;    // [batch * heads][query tiles][warps]: number of key blocks that have added
  float4* sums;  // [slots * group][tiles of queries][warps][pieces][lane]
  // Partial dk and dv, [sample][unit of the sample][key][column], if a key/value head has several
  // units; else null.
  HeadArray<float> dk_parts, dv_parts;
};

SharedSums shared_sums(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
                       int keys_of_block);

// Sums the partial dk and dv in the order of the units. Does nothing if each key/value head has one
// unit.
void add_parts(const FlashBackward& op, const SharedSums& work, const CudaState& state);

// One tile of queries of one head.
struct FlashStep {
  int first_query, head;
  int adding;  // number of key blocks that add to dq of the tile
  // place: index of the tile's counters, [head][tile]. sums_place: index of its dq accumulators,
  // [slot][head][tile]. place_before: as `place`, for the slot's previous unit; -1 without one.
  int place, sums_place, place_before;
};

// Work of a thread block, in shared memory to save registers.
struct BlockWork {
  static constexpr int kSteps = 4;  // ring of the last steps; three are in use at once
  FlashItem item;
  FlashStep steps[kSteps];
};

// A thread block that processes kKeys keys.
template <class T, int kKeys>
class KeyBlock {
 public:
  // Called by all threads; `work` is in shared memory.
  __device__ KeyBlock(const FlashBackwardArgs<T>& a, const SharedSums& w, BlockWork& work)
      : a_(a), w_(w), work_(work) {
    if (threadIdx.x == 0) work.item = item_of(next_number(w.next), w.schedule);
    __syncthreads();
  }

  __device__ int steps() const { return item().tiles_met * w_.schedule.group; }

 protected:
  __device__ const FlashItem& item() const { return work_.item; }
  __device__ const FlashStep& at(int step) const { return work_.steps[step % BlockWork::kSteps]; }
  __device__ int kv_head() const { return item().first_head / a_.sizes.group(); }

  // Returns the data of a step, and stores it for at(). All threads call it. A block barrier must
  // follow before at(step).
  __device__ FlashStep begin_step(int step) const {
    const FlashSchedule& s = w_.schedule;
    const int tile = tile_of(step, s), head = head_in_unit(step, s);
    const auto place_of = [&](int unit) { return (unit * s.group + head) * s.query_tiles + tile; };
    const FlashStep now{
        tile * kTileQueries,   item().first_head + head,
        s.key_blocks_of(tile), place_of(item().unit),
        place_of(item().slot), item().unit_before < 0 ? -1 : place_of(item().unit_before)};
    if (threadIdx.x == 0) work_.steps[step % BlockWork::kSteps] = now;
    return now;
  }

  // Starts copying two arrays to `to`: log_sum of the step's queries, then o . d_o of the queries.
  __device__ void fetch_numbers(const FlashStep& now, float* to) const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread >= 2 * kTileQueries) return;
    const int query = now.first_query + thread % kTileQueries;
    const float* const of_head =
        (thread < kTileQueries ? a_.log_sum : a_.along) + a_.sizes.row(item().sample, now.head);
    const bool present = query < a_.sizes.seq;
    copy_word_async(to + thread, present ? of_head + query : of_head, present);
  }

  // Returns the counter that the warp of `thread` must wait for, with its current value. The
  // previous key block of the same unit sets the counter. For the first key block of a unit, the
  // last key block of the unit that used the accumulator slot before sets the counter. If the slot
  // was unused, no wait is needed.
  template <int kWarps>
  __device__ Turn awaited_turn(int step, int thread) const {
    const FlashStep& now = at(step);
    const bool is_first = item().key_block == 0, waits = !is_first || now.place_before >= 0;
    const int place = is_first && waits ? now.place_before : now.place;
    return turn_now(w_.turns + place * kWarps + thread / 32,
                    waits ? (is_first ? now.adding : item().key_block) : 0);
  }

  // Adds the warp's part of the tile's dq to the sum of earlier key blocks. Call after
  // wait_for_turn(awaited_turn()). For the last key block that the tile sees, `dq` becomes the
  // complete sum and `store` is called. pass_turn() must follow.
  template <int kWarps, int N, class Store>
  __device__ void add_in_turn(int step, int thread, float (&dq)[N][4], Store store) const {
    const FlashStep& now = at(step);
    const int warp = thread / 32, key_block = item().key_block;
    float4* const sums =
        w_.sums + std::int64_t{now.sums_place * kWarps + warp} * (N * 32) + thread % 32;
    const bool is_first = key_block == 0, is_last = key_block + 1 == now.adding;
    if (!is_last) {
      if (is_first) {
        store_beyond_l1<32>(sums, dq);
      } else {
        add_beyond_l1<32>(sums, dq);
      }
      return;
    }
    if (!is_first) add_from_beyond_l1<32>(dq, sums);
    store();
  }
  // Allows the next key block to add, after add_in_turn() of the step.
  template <int kWarps>
  __device__ void pass_turn(int step, int thread) const {
    end_turn(w_.turns + at(step).place * kWarps + thread / 32, item().key_block + 1);
  }

  // Writes N columns of dk or dv of 16 keys, multiplied by `scale`, to the gradient `whole`, or to
  // the unit's partial result `part` if that is defined.
  template <int N>
  __device__ void store_keys(const float (&sums)[N / 8][4], float scale, const HeadArray<T>& whole,
                             const HeadArray<float>& part, int first, int column) const {
    const float factor[2] = {scale, scale};
    const HeadExtent extent{a_.sizes.keys, a_.sizes.head_dim - column};
    if (part.data == nullptr) {
      store_result<T, N>(sums, factor, whole.at(item().sample, kv_head()) + column, whole.position,
                         first, extent);
    } else {
      const int unit = item().unit - item().sample * w_.schedule.sample_units;
      store_result<float, N>(sums, factor, part.at(item().sample, unit) + column, part.position,
                             first, extent);
    }
  }

  const FlashBackwardArgs<T>& a_;
  const SharedSums& w_;
  BlockWork& work_;
};

}  // namespace tpsim
