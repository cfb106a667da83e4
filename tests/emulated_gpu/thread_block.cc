#include "tests/emulated_gpu/thread_block.h"

#include <cstdio>
#include <cstring>
#include <numeric>

#include "tests/emulated_gpu/block.h"

namespace tpsim::emulated {
namespace {

// Maximum number of started, unfinished blocks: one per SM.
constexpr std::size_t kResident = 4;

Block& block() { return *block_at_work(); }
bool has_come = false;  // an event for which a block may have waited
bool waits_are_left_out = false;

}  // namespace

// Blocks start in a shuffled order, by a step that is coprime to their number. The next block among
// the started ones is random. If all wait and no event has occurred, a GPU would hang too.
void run_grid(const Grid& grid, const std::function<void()>& thread) {
  static std::uint64_t grids = 0;
  static std::array<Block, kResident> blocks_at_once;
  const std::uint64_t seed = mixed(++grids);
  const std::uint64_t blocks = std::uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  std::uint64_t step = seed % blocks + 1;
  while (std::gcd(step, blocks) != 1) ++step;
  blockDim = grid.threads;
  gridDim = grid.blocks;
  std::uint64_t at = mixed(seed) % blocks, begun = 0, drawn = seed;
  std::vector<Block*> free, resident;
  for (Block& one : blocks_at_once) {
    one.prepare(seed);
    free.push_back(&one);
  }
  std::size_t waits = 0;  // consecutive waits
  while (begun < blocks || !resident.empty()) {
    while (begun < blocks && !free.empty()) {
      at = (at + step) % blocks;
      ++begun;
      const uint3 index{static_cast<unsigned>(at % grid.blocks.x),
                        static_cast<unsigned>(at / grid.blocks.x % grid.blocks.y),
                        static_cast<unsigned>(at / grid.blocks.x / grid.blocks.y)};
      free.back()->begin(seed + at, index, grid, thread);
      resident.push_back(free.back());
      free.pop_back();
    }
    drawn = mixed(drawn + 1);
    // Waiting blocks are skipped until an event occurs.
    const std::size_t which =
        waits > 0 ? (drawn + waits) % resident.size() : drawn % resident.size();
    Block* const one = resident[which];
    has_come = false;
    const Progress progress = one->run();
    if (progress == Progress::kEnded) {
      std::swap(resident[which], resident.back());
      resident.pop_back();
      free.push_back(one);
    }
    waits = progress == Progress::kWaits && !has_come ? waits + 1 : 0;
    if (waits > 64 * kResident) end_with("all blocks that have begun wait for others");
  }
}

void meet_block() { block().meet(false); }
bool any_of_block(bool mine) { return block().meet(mine); }
std::byte* shared_memory() { return block().memory(); }
void* shared_variable(const void* key, std::size_t bytes) { return block().variable(key, bytes); }
void let_others_go() { block().let_others_go(); }
void wait_for_others() { block().wait_for_others(); }
void tell_others() { has_come = true; }
bool ignores_turns() { return waits_are_left_out; }
void ignore_turns(bool ignores) { waits_are_left_out = ignores; }

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
    work();  // other threads may run meanwhile
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
