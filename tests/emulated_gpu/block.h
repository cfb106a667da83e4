// One thread block of the emulated GPU: fibers that switch at barriers, at warp instructions, and
// where the block waits for other blocks.
#pragma once

#include <vector_types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "tests/emulated_gpu/fiber.h"
#include "tests/emulated_gpu/thread_block.h"

namespace tpsim::emulated {

// Mixes the bits of x.
inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  int commit;  // number of the commit, from 0
};

struct Later {
  std::function<void()> work;
  int commit;
};

struct Thread {
  Fiber* fiber = nullptr;    // null before the start and after the end
  std::vector<Copy> copies;  // in the order of their commits
  int commits = 0;
  bool has_unseen_copies = false;
  std::vector<Later> later;  // in the order of their commits
  int work_commits = 0;
  bool is_fenced = false;
};

struct Warp {
  WarpOperands operands;
  const void* what = nullptr;  // the instruction at which lanes wait
  std::vector<int> waiting;    // threads
  int ended = 0;
};

// Shared memory of one declaration in a kernel.
struct Variable {
  const void* key;
  std::unique_ptr<std::max_align_t[]> memory;
};

enum class Progress { kEnded, kLetsOthersGo, kWaits };

class Block {
 public:
  // Prepares for the blocks of a grid with `blockDim` threads.
  void prepare(std::uint64_t seed);
  void begin(std::uint64_t seed, uint3 index, const Grid& grid, const std::function<void()>& body);
  // Runs until the block ends, yields, or waits for other blocks.
  Progress run();

  Thread& current() { return threads_[static_cast<std::size_t>(current_)]; }
  std::byte* memory() { return memory_.get(); }
  void* variable(const void* key, std::size_t bytes);
  void let_others_go();
  void wait_for_others();
  bool meet(bool vote);
  Arrival arrive_in_warp(const void* what, const void* in, std::size_t bytes);
  void release_warp();
  void wait();

 private:
  Warp& warp_of_current() { return warps_[static_cast<std::size_t>(current_ / kLanes)]; }
  int lanes_of(int warp) const { return std::min(kLanes, count_ - warp * kLanes); }
  std::size_t below(std::size_t count) {
    seed_ += 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>((mixed(seed_) >> 32) * count >> 32);
  }
  void enter(int thread);
  void work();
  void end_current();
  void open_barrier_if_all_are_here();

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const std::function<void()>* body_ = nullptr;
  uint3 index_{};  // blockIdx
  std::unique_ptr<std::byte, Free> memory_{
      static_cast<std::byte*>(std::aligned_alloc(1024, kSharedMemory))};
  std::vector<Variable> variables_;
  bool lets_others_go_ = false;
  int count_ = 0;
  int current_ = 0;
  int ended_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<Thread> threads_;
  std::vector<uint3> index_of_;  // threadIdx
  std::vector<int> order_;       // in which threads start
  std::vector<Warp> warps_;
  std::vector<int> unstarted_, runnable_, at_barrier_;
  std::vector<int> waiting_;     // for other blocks
  bool vote_ = false;            // of the threads at the barrier
  std::array<bool, 2> votes_{};  // results of the last two barriers, alternating
  std::size_t barriers_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

// The block of the running thread; null between grids.
Block*& block_at_work();

}  // namespace tpsim::emulated
