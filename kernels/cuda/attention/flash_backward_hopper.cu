// Flash attention backward with Hopper warpgroups: key blocks of 128 keys (flash_turns.cuh), five
// GEMMs as in flash_backward.cu. Each of two warpgroups computes probabilities [key][query] of 64
// keys and the tile's 64 queries. Probabilities and score gradients stay in registers as left
// operands of the GEMMs for dv and dk. Score gradients are also written to shared memory, and each
// warpgroup computes one half of dq's columns from them. For sm_90a and tiles of 128 columns only.
#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/flash_turns.cuh"
#include "kernels/cuda/attention/hopper_tiles.cuh"
#include "kernels/cuda/attention/warpgroups.h"
#include "kernels/cuda/runtime/cuda_check.h"

namespace tpsim {
namespace {

constexpr int kThreads = kTwoWarpgroups, kWarps = kThreads / 32;
constexpr int kD = 128, kChunks = kD / kChunk;
constexpr int kKeys = 128, kQueries = kTileQueries;
constexpr int kRows = 64;     // keys per warpgroup
constexpr int kColumns = 64;  // columns of dq per warpgroup
constexpr int kTurns = 2;     // buffers for a tile of q and d_o
constexpr unsigned kKeyPanel = kKeys * kPanelRowBytes, kQueryPanel = kQueries * kPanelRowBytes;
constexpr int kBytes = (2 * kKeys + 2 * kTurns * kQueries) * kD * 2 + kKeys * kQueries * 2 +
                       kTurns * 2 * kQueries * 4 + kPanelAlignment;

struct Tiles {
  uint4* shared;
  __device__ uint4* keys() const { return shared; }
  __device__ uint4* values() const { return shared + kKeys * kChunks; }
  __device__ uint4* met(int which, int turn) const {
    return shared + (2 * kKeys + (2 * turn + which) * kQueries) * kChunks;
  }
  __device__ uint4* slopes() const { return met(0, kTurns); }  // [key][query], one panel
  // log_sum of the queries, followed by o . d_o.
  __device__ float* numbers(int turn) const {
    return reinterpret_cast<float*>(slopes() + kKeys * kQueries / kChunk) + turn * 2 * kQueries;
  }
};

template <class T>
class Backward : public KeyBlock<T, kKeys> {
  using Base = KeyBlock<T, kKeys>;
  using Base::a_, Base::w_;
  using Base::at, Base::item;

 public:
  __device__ Backward(const FlashBackwardArgs<T>& a, const SharedSums& w, BlockWork& block_work,
                      uint4* shared)
      : Base(a, w, block_work), tiles_{shared} {}

  __device__ void fetch_keys() const {
    const FlashSizes& s = a_.sizes;
    fetch_panels<T, kD, kKeys>(tiles_.keys(), a_.k.at(item().sample, this->kv_head()),
                               a_.k.position, item().first_key, s.keys, s.head_dim);
    fetch_panels<T, kD, kKeys>(tiles_.values(), a_.v.at(item().sample, this->kv_head()),
                               a_.v.position, item().first_key, s.keys, s.head_dim);
  }

  __device__ void fetch(int step) const {
    const FlashSizes& s = a_.sizes;
    const FlashStep now = this->begin_step(step);
    const int head = now.head, first = now.first_query, turn = step % kTurns;
    fetch_panels<T, kD, kQueries>(tiles_.met(0, turn), a_.q.at(item().sample, head), a_.q.position,
                                  first, s.seq, s.head_dim);
    fetch_panels<T, kD, kQueries>(tiles_.met(1, turn), a_.d_o.at(item().sample, head),
                                  a_.d_o.position, first, s.seq, s.head_dim);
    this->fetch_numbers(now, tiles_.numbers(turn));
    commit_copies();
  }

  // Processes one tile of queries, with one block barrier. The next key block may add to dq of this
  // tile from the middle of the next call on, when this block's sums have reached the L2 cache.
  __device__ void meet(int step) {
    thread_ = thread_now();
    const uint4 *const q = tiles_.met(0, step % kTurns), *const d_o = tiles_.met(1, step % kTurns);
    float probs[1][kQueries / 8][4], slopes[1][kQueries / 8][4];
    begin_products();
    start_pairs(probs[0], tiles_.keys(), q);
    start_pairs(slopes[0], tiles_.values(), d_o);
    wait_for_products<1>();
    take_sums(probs[0]);
    take_probs(step, probs[0]);
    wait_for_products<0>();
    take_sums(slopes[0]);
    take_slopes(step, probs[0], slopes[0]);
    put(slopes[0]);
    unsigned left[2][kQueries / 16][1][4];
#pragma unroll
    for (int k = 0; k < kQueries / 16; ++k) {
      take_as_left<T, 1, kQueries>(probs, k, left[0][k]);
      take_as_left<T, 1, kQueries>(slopes, k, left[1][k]);
    }
    begin_products();
    start_sums(dv_, left[0], d_o);
    start_sums(dk_, left[1], q);
    show_to_products();
    if (step > 0) pass_turn(step - 1);
    __syncthreads();  // score gradients of all warps are written
    thread_ = thread_now();
    float dq[kColumns / 8][4];
    begin_products();
    start_dq(dq);
    // The counter usually has the awaited value before the GEMMs complete.
    const Turn turn = this->template awaited_turn<kWarps>(step, thread_);
    wait_for_products<0>();
    take_sums(dk_[0]);
    take_sums(dv_[0]);
    take_sums(dq);
    wait_for_turn(turn);
    this->template add_in_turn<kWarps>(step, thread_, dq, [&] { store_dq(step, dq); });
  }

  // Call after the last step: allows the next key block to add to the last tile.
  __device__ void finish() const { pass_turn(this->steps() - 1); }

  __device__ void store() const {
    const int first = item().first_key + key_row();
    this->template store_keys<kD>(dk_[0], a_.sizes.scale, a_.dk, w_.dk_parts, first, 0);
    this->template store_keys<kD>(dv_[0], 1.0F, a_.dv, w_.dv_parts, first, 0);
  }

 private:
  using Scores = float[kQueries / 8][4];  // [key][query]

  __device__ void pass_turn(int step) const { Base::template pass_turn<kWarps>(step, thread_); }

  __device__ int lane() const { return thread_ % 32; }
  // After the shuffle, nvcc keeps the descriptors of wgmma in uniform registers.
  __device__ int group() const { return __shfl_sync(0xffffffffU, thread_ / 128, 0); }
  // First key of the warp.
  __device__ int key_row() const { return thread_ / 32 * 16; }

  // Starts pairs = the warpgroup's rows of `kept` (keys or values) times the transpose of a tile of
  // q or d_o.
  __device__ void start_pairs(Scores& pairs, const uint4* kept, const uint4* met) const {
    const std::uint64_t a = matrix_descriptor(
        shared_address(kept) + static_cast<unsigned>(group() * kRows * kPanelRowBytes), 16);
    const std::uint64_t b = matrix_descriptor(shared_address(met), 16);
#pragma unroll
    for (int k = 0; k < kD / 16; ++k) {
      multiply_rows(pairs, moved(a, step_along_rows(k, kKeys)),
                    moved(b, step_along_rows(k, kQueries)), k > 0, T{});
    }
    commit_products();
  }

  // Starts sums += pairs (probabilities or score gradients) times a tile of d_o or q.
  __device__ void start_sums(float (&sums)[1][kD / 8][4],
                             const unsigned (&pairs)[kQueries / 16][1][4], const uint4* met) const {
    const std::uint64_t b = matrix_descriptor(shared_address(met), kQueryPanel);
#pragma unroll
    for (int k = 0; k < kQueries / 16; ++k) {
      multiply_depth(sums[0], pairs[k][0], moved(b, k * 16 * kPanelRowBytes), T{});
    }
    commit_products();
  }

  // Starts dq = the transposed score gradients times the warpgroup's columns of the keys.
  __device__ void start_dq(float (&dq)[kColumns / 8][4]) const {
    const std::uint64_t a = matrix_descriptor(shared_address(tiles_.slopes()), kKeyPanel);
    const std::uint64_t b = matrix_descriptor(
        shared_address(tiles_.keys()) + static_cast<unsigned>(group()) * kKeyPanel, kKeyPanel);
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      const unsigned further = static_cast<unsigned>(k) * 16 * kPanelRowBytes;
      multiply_columns(dq, moved(a, further), moved(b, further), k > 0, T{});
    }
    commit_products();
  }

  // Replaces scores by probabilities.
  __device__ void take_probs(int step, Scores& probs) const {
    const FlashSizes& s = a_.sizes;
    const float* const log_sums = tiles_.numbers(step % kTurns);
    const float slope2 = (a_.slopes != nullptr ? a_.slopes[at(step).head] : 0.0F) * kLog2E;
    const float scale2 = s.scale * kLog2E;
    const int first = at(step).first_query;
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = n * 8 + result_col(lane(), i);
        const int key = item().first_key + key_row() + result_row(lane(), i);
        const bool seen = key <= first + at + s.earlier() && first + at < s.seq;
        const float score2 = scale2 * probs[n][i] + slope2 * static_cast<float>(key);
        probs[n][i] = seen ? exp2_fast(score2 - log_sums[at] * kLog2E) : 0.0F;
      }
    }
  }

  // Replaces gradients of probabilities by gradients of the scaled scores.
  __device__ void take_slopes(int step, const Scores& probs, Scores& slopes) const {
    const float* const alongs = tiles_.numbers(step % kTurns) + kQueries;
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        slopes[n][i] = probs[n][i] * (slopes[n][i] - alongs[n * 8 + result_col(lane(), i)]);
      }
    }
  }

  __device__ void put(const Scores& own) const {
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = key_row() + result_row(lane(), 2 * half);
        auto* const to = reinterpret_cast<unsigned*>(tiles_.slopes() + panelled(row, n, kKeys));
        to[lane() % 4] = packed(own[n][2 * half], own[n][2 * half + 1], T{});
      }
    }
  }

  __device__ void store_dq(int step, const float (&dq)[kColumns / 8][4]) const {
    const FlashSizes& s = a_.sizes;
    const float scale[2] = {s.scale, s.scale};
    const int column = group() * kColumns;
    store_result<T, kColumns>(dq, scale, a_.dq.at(item().sample, at(step).head) + column,
                              a_.dq.position, at(step).first_query + key_row() % kRows,
                              {s.seq, s.head_dim - column});
  }

  Tiles tiles_;
  int thread_ = thread_now();
  float dk_[1][kD / 8][4] = {}, dv_[1][kD / 8][4] = {};
};

template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    flash_backward_hopper_kernel(const FlashBackwardArgs<T> a, const SharedSums w) {
  extern __shared__ __align__(1024) uint4 shared[];
  __shared__ BlockWork block_work;
  Backward<T> work(a, w, block_work, aligned_tiles(shared));
  work.fetch_keys();
  work.fetch(0);
  for (int step = 0; step < work.steps(); ++step) {
    meet_tiles();
    if (step + 1 < work.steps()) work.fetch(step + 1);
    work.meet(step);
  }
  work.finish();
  work.store();
}

template <class T>
void launch(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
            const CudaState& state) {
  const SharedSums work = shared_sums(op, memory, scratch, kKeys);
  const auto kernel = flash_backward_hopper_kernel<T>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "shared memory of flash attention");
  kernel<<<static_cast<unsigned>(work.schedule.items()), kThreads, kBytes, state.stream>>>(
      backward_args<T>(op, reinterpret_cast<float*>(scratch)), work);
  add_parts(op, work, state);
}

}  // namespace

void flash_backward_by_warpgroups(const FlashBackward& op, const FlashMemory& memory,
                                  std::byte* scratch, const CudaState& state) {
  with_half_type(op.q.tensor.dtype(), [&](auto type) {
    launch<typename decltype(type)::type>(op, memory, scratch, state);
  });
}

}  // namespace tpsim
