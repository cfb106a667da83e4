#include "tests/emulated_gpu/block.h"

#include <cstring>
#include <numeric>

namespace tpsim::emulated {

Block*& block_at_work() {
  static Block* one = nullptr;
  return one;
}

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

void Block::begin(std::uint64_t seed, uint3 index, const Grid& grid,
                  const std::function<void()>& body) {
  body_ = &body;
  index_ = index;
  ended_ = 0;
  seed_ = seed;
  vote_ = false;
  std::memset(memory(), 0xff, grid.shared_bytes);
  variables_.clear();
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
  waiting_.clear();
}

Progress Block::run() {
  block_at_work() = this;
  blockIdx = index_;
  lets_others_go_ = false;
  runnable_.insert(runnable_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  while (ended_ < count_) {
    if (lets_others_go_) return Progress::kLetsOthersGo;
    if (!runnable_.empty()) {
      std::swap(runnable_[below(runnable_.size())], runnable_.back());
      const int thread = runnable_.back();
      runnable_.pop_back();
      enter(thread);
      current().fiber->resume();
      continue;
    }
    if (unstarted_.empty()) {
      if (!waiting_.empty()) return Progress::kWaits;
      end_with("not all threads of a block or warp come to where others wait");
    }
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
  return Progress::kEnded;
}

void* Block::variable(const void* key, std::size_t bytes) {
  for (const Variable& one : variables_) {
    if (one.key == key) return one.memory.get();
  }
  const std::size_t words = (bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
  variables_.push_back({key, std::make_unique<std::max_align_t[]>(words)});
  std::memset(variables_.back().memory.get(), 0xff, bytes);
  return variables_.back().memory.get();
}

// Yields occasionally, so that many orders are tested. Every thread calls this in each step of
// attention's backward.
void Block::let_others_go() {
  if (below(32) > 0) return;
  lets_others_go_ = true;
  runnable_.push_back(current_);
  wait();
}

void Block::wait_for_others() {
  waiting_.push_back(current_);
  wait();
}

void Block::enter(int thread) {
  current_ = thread;
  threadIdx = index_of_[static_cast<std::size_t>(thread)];
}

// Runs in a fiber: starts threads one after another.
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

// Ended threads do not count.
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

}  // namespace tpsim::emulated
