// A grid of threads on the host. A few blocks run at a time and switch where one waits for another
// or yields. The threads of a block are fibers that switch at barriers and at warp instructions.
//
// The order of blocks and threads is shuffled, differently for every block but equally in every
// run, so that code that depends on an order fails. Faults that hang a GPU or give undefined
// results end the process with a message: a barrier or warp instruction that not all threads reach,
// or blocks that all wait for others.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>

namespace tpsim::emulated {

inline constexpr int kLanes = 32;
inline constexpr std::size_t kSharedMemory = 227 << 10;  // maximum per block

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
};

// Runs `thread`, a kernel's body, for every thread.
void run_grid(const Grid& grid, const std::function<void()>& thread);

// The following functions are for threads of a grid.

void meet_block();
// Returns whether `mine` is true for any thread of the block.
bool any_of_block(bool mine);

// The block's shared memory, initialized to all ones.
std::byte* shared_memory();
// Shared memory of the block for `key`, initialized to all ones.
void* shared_variable(const void* key, std::size_t bytes);
// A shared variable of the block; every lambda expression identifies another variable.
template <class T, class Key>
T& block_variable(Key) {
  static const char key = 0;
  return *static_cast<T*>(shared_variable(&key, sizeof(T)));
}

// Yields: other blocks may run before this thread continues, as on a GPU.
void let_others_go();
// Yields while the thread waits for another block. The caller then checks again.
void wait_for_others();
// Wakes up blocks that wait.
void tell_others();
// For tests of the emulator: skips waits for other blocks.
bool ignores_turns();
void ignore_turns(bool ignores);

// Asynchronous copies, which may run any time until they are waited for. They run at the wait, or
// when the thread ends.
void copy_later(void* to, const void* from, std::size_t bytes);
void commit_copies();
void wait_for_copies(int left);

// Asynchronous work, which reads and writes at the wait and not before, like wgmma. fence_work() is
// required between the last wait and the next work, since registers must not change after it.
void work_later(std::function<void()> work);
void fence_work();
void commit_work();
void wait_for_work(int left);
// Makes this thread's copies visible to later asynchronous work.
void show_copies();

// Inputs and outputs of the lanes of a warp instruction.
struct WarpOperands {
  static constexpr std::size_t kBytes = 64;
  using Operand = std::array<std::byte, kBytes>;
  std::array<Operand, kLanes> in, out;
};
struct Arrival {
  WarpOperands* operands = nullptr;
  int lane = 0;
  bool last = false;  // all other lanes have arrived and wait
};
// The current lane arrives at a warp instruction; `what` identifies the instruction.
Arrival arrive_in_warp(const void* what, const void* in, std::size_t bytes);
void release_warp();  // called by the last lane
void wait_for_warp();

// One instruction of a whole warp: `work(in, out)` runs once, with arrays of the lanes' inputs and
// outputs.
template <class Out, class In, class Work>
Out warp_together(const In& in, Work work) {
  static_assert(sizeof(In) <= WarpOperands::kBytes && sizeof(Out) <= WarpOperands::kBytes);
  static constexpr char kWhat = 0;
  const Arrival arrival = arrive_in_warp(&kWhat, &in, sizeof in);
  if (arrival.last) {
    std::array<In, kLanes> ins{};
    std::array<Out, kLanes> outs{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::memcpy(&ins[i], arrival.operands->in[i].data(), sizeof(In));
    }
    work(ins, outs);
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::memcpy(arrival.operands->out[i].data(), &outs[i], sizeof(Out));
    }
    release_warp();
  } else {
    wait_for_warp();
  }
  Out out{};
  std::memcpy(&out, arrival.operands->out[static_cast<std::size_t>(arrival.lane)].data(),
              sizeof out);
  return out;
}

[[noreturn]] void end_with(const char* fault);

}  // namespace tpsim::emulated

// Built-in variables of CUDA C++.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
