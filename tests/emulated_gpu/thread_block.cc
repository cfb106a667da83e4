#include "tests/emulated_gpu/thread_block.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/emulated_gpu/fiber.h"

namespace tpsim::emulated {
namespace {

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  int commit;  // the first is 0
};

struct Later {
  std::function<void()> work;
  int commit;
};

struct Thread {
  Fiber* fiber = nullptr;    // while it has begun and not ended
  std::vector<Copy> copies;  // in the order of their commits
  int commits = 0;
  bool has_unseen_copies = false;
  std::vector<Later> later;  // in the order of their commits
  int work_commits = 0;
  bool is_fenced = false;
};

struct Warp {
  WarpOperands operands;
  const void* what = nullptr;  // the instruction that lanes wait at
  std::vector<int> waiting;    // threads
  int ended = 0;
};

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class Block {
 public:
  // Of all blocks of a grid to come: `blockDim` threads.
  void prepare(std::uint64_t seed);
  void run(std::uint64_t seed, const std::function<void()>& body);

  Thread& current() { return threads_[static_cast<std::size_t>(current_)]; }
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

  const std::function<void()>* body_ = nullptr;
  int count_ = 0;
  int current_ = 0;
  int ended_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<Thread> threads_;
  std::vector<uint3> index_of_;  // threadIdx
  std::vector<int> order_;       // in which threads begin
  std::vector<Warp> warps_;
  std::vector<int> unstarted_, runnable_, at_barrier_;
  bool vote_ = false;            // of those at the barrier
  std::array<bool, 2> votes_{};  // of the last barriers, by turns
  std::size_t barriers_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

Block& block() {
  static Block only;
  return only;
}

alignas(1024) std::array<std::byte, kSharedMemory> arena;

void Block::prepare(std::uint64_t seed) {
  seed_ = seed;
  count_ = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  index_of_.clear();
  for (unsigned z = 0; z < blockDim.z; ++z) {
    for (unsigned y = 0; y < blockDim.y; ++y) {
      for (unsigned x = 0; x < blockDim.x; ++x) index_of_.push_back({x, y, z});
    }
  }
  order_.resize(index_of_.size());
  std::iota(order_.begin(), order_.end(), 0);
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[below(i)]);
  threads_.resize(order_.size());
  warps_.resize((order_.size() + kLanes - 1) / kLanes);
}

void Block::run(std::uint64_t seed, const std::function<void()>& body) {
  body_ = &body;
  ended_ = 0;
  seed_ = seed;
  vote_ = false;
  for (Thread& thread : threads_) {
    thread.commits = thread.work_commits = 0;
    thread.has_unseen_copies = thread.is_fenced = false;
  }
  for (Warp& warp : warps_) {
    warp.waiting.clear();
    warp.ended = 0;
  }
  unstarted_ = order_;
  const auto turned = static_cast<std::ptrdiff_t>(below(order_.size()));
  std::rotate(unstarted_.begin(), unstarted_.begin() + turned, unstarted_.end());
  runnable_.clear();
  at_barrier_.clear();
  while (ended_ < count_) {
    if (!runnable_.empty()) {
      std::swap(runnable_[below(runnable_.size())], runnable_.back());
      const int thread = runnable_.back();
      runnable_.pop_back();
      enter(thread);
      current().fiber->resume();
      continue;
    }
    if (unstarted_.empty())
      end_with("not all threads of a block or warp come to where others wait");
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>([this] { work(); }));
      idle_.push_back(fibers_.back().get());
    }
    Fiber* const fiber = idle_.back();
    idle_.pop_back();
    enter(unstarted_.back());
    current().fiber = fiber;
    fiber->resume();
  }
}

void Block::enter(int thread) {
  current_ = thread;
  threadIdx = index_of_[static_cast<std::size_t>(thread)];
}

// Of a fiber: threads that have not begun, one after another.
void Block::work() {
  while (true) {
    while (!unstarted_.empty()) {
      Fiber* const fiber = current().fiber;
      enter(unstarted_.back());
      unstarted_.pop_back();
      current().fiber = fiber;
      (*body_)();
      end_current();
    }
    Fiber* const fiber = current().fiber;
    idle_.push_back(fiber);
    fiber->pause();
  }
}

void Block::end_current() {
  emulated::commit_copies();
  emulated::wait_for_copies(0);
  if (!current().later.empty()) end_with("a thread ends before its products");
  ++ended_;
  Warp& warp = warp_of_current();
  ++warp.ended;
  if (!warp.waiting.empty()) end_with("a lane has ended while others of its warp wait for it");
  open_barrier_if_all_are_here();
}

// Threads that have ended are waited for no more.
void Block::open_barrier_if_all_are_here() {
  if (at_barrier_.empty() || static_cast<int>(at_barrier_.size()) + ended_ < count_) return;
  votes_[barriers_ % 2] = vote_;
  vote_ = false;
  ++barriers_;
  runnable_.insert(runnable_.end(), at_barrier_.begin(), at_barrier_.end());
  at_barrier_.clear();
}

void Block::wait() {
  const int thread = current_;
  threads_[static_cast<std::size_t>(thread)].fiber->pause();
}

bool Block::meet(bool vote) {
  const std::size_t barrier = barriers_;
  vote_ = vote_ || vote;
  at_barrier_.push_back(current_);
  open_barrier_if_all_are_here();
  wait();
  return votes_[barrier % 2];
}

Arrival Block::arrive_in_warp(const void* what, const void* in, std::size_t bytes) {
  Warp& warp = warp_of_current();
  if (warp.ended > 0) end_with("a warp's instruction after one of its lanes has ended");
  if (!warp.waiting.empty() && warp.what != what) {
    end_with("lanes of a warp meet at different instructions");
  }
  warp.what = what;
  const int lane = current_ % kLanes;
  std::memcpy(warp.operands.in[static_cast<std::size_t>(lane)].data(), in, bytes);
  const bool last = static_cast<int>(warp.waiting.size()) + 1 == lanes_of(current_ / kLanes);
  if (!last) warp.waiting.push_back(current_);
  return {&warp.operands, lane, last};
}

void Block::release_warp() {
  Warp& warp = warp_of_current();
  runnable_.insert(runnable_.end(), warp.waiting.begin(), warp.waiting.end());
  warp.waiting.clear();
}

}  // namespace

// The blocks in a shuffled order: a step that shares no factor with their number.
void run_grid(const Grid& grid, const std::function<void()>& thread) {
  static std::uint64_t grids = 0;
  const std::uint64_t seed = mixed(++grids);
  const std::uint64_t blocks = std::uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  std::uint64_t step = seed % blocks + 1;
  while (std::gcd(step, blocks) != 1) ++step;
  blockDim = grid.threads;
  gridDim = grid.blocks;
  block().prepare(seed);
  std::uint64_t at = mixed(seed) % blocks;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    at = (at + step) % blocks;
    blockIdx = {static_cast<unsigned>(at % grid.blocks.x),
                static_cast<unsigned>(at / grid.blocks.x % grid.blocks.y),
                static_cast<unsigned>(at / grid.blocks.x / grid.blocks.y)};
    std::memset(arena.data(), 0xff, grid.shared_bytes);
    block().run(seed + at, thread);
  }
}

void meet_block() { block().meet(false); }
bool any_of_block(bool mine) { return block().meet(mine); }
std::byte* shared_memory() { return arena.data(); }

void copy_later(void* to, const void* from, std::size_t bytes) {
  Thread& thread = block().current();
  thread.copies.push_back({to, from, bytes, thread.commits});
}

void commit_copies() { ++block().current().commits; }

void wait_for_copies(int left) {
  Thread& thread = block().current();
  auto copy = thread.copies.begin();
  for (; copy != thread.copies.end() && copy->commit < thread.commits - left; ++copy) {
    std::memcpy(copy->to, copy->from, copy->bytes);
    thread.has_unseen_copies = true;
  }
  thread.copies.erase(thread.copies.begin(), copy);
}

void work_later(std::function<void()> work) {
  Thread& thread = block().current();
  if (!thread.is_fenced) end_with("wgmma without wgmma.fence since the last wait");
  if (thread.has_unseen_copies) end_with("wgmma after copies without fence.proxy.async");
  thread.later.push_back({std::move(work), thread.work_commits});
}
void fence_work() { block().current().is_fenced = true; }
void commit_work() { ++block().current().work_commits; }
void show_copies() { block().current().has_unseen_copies = false; }

void wait_for_work(int left) {
  Thread& thread = block().current();
  thread.is_fenced = false;
  while (!thread.later.empty() && thread.later.front().commit < thread.work_commits - left) {
    const std::function<void()> work = std::move(thread.later.front().work);
    thread.later.erase(thread.later.begin());
    work();  // other threads go on meanwhile
  }
}

Arrival arrive_in_warp(const void* what, const void* in, std::size_t bytes) {
  return block().arrive_in_warp(what, in, bytes);
}
void release_warp() { block().release_warp(); }
void wait_for_warp() { block().wait(); }

void end_with(const char* fault) {
  std::fprintf(stderr, "emulated GPU: %s (block %u,%u,%u, thread %u,%u,%u)\n", fault, blockIdx.x,
               blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

}  // namespace tpsim::emulated
