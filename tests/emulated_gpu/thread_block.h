// A grid of threads on the host: a few blocks at a time, which take turns where one waits for
// another or lets it go on; the threads of a block as fibers that change at barriers and where
// lanes of a warp work together.
//
// The order of blocks and of threads is shuffled, differently for every block but the same in every
// run of the program, so that code that leans on an order is found out. A fault that a GPU would
// answer with a hang or with nonsense ends the process with a sentence: a barrier or a warp's
// instruction that not all threads reach, blocks that all wait for others.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>

namespace tpsim::emulated {

inline constexpr int kLanes = 32;
inline constexpr std::size_t kSharedMemory = 227 << 10;  // of a block, at most

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
};

// `thread` is a kernel's body, run for every thread.
void run_grid(const Grid& grid, const std::function<void()>& thread);

// The rest is for threads of a grid.

void meet_block();
// Whether any thread of the block says so.
bool any_of_block(bool mine);

// The block's shared memory, all ones before the block begins.
std::byte* shared_memory();
// Memory of the block for what `key` stands for, all ones before the block begins.
void* shared_variable(const void* key, std::size_t bytes);
// A variable of the block; every lambda that is given stands for another.
template <class T, class Key>
T& block_variable(Key) {
  static const char key = 0;
  return *static_cast<T*>(shared_variable(&key, sizeof(T)));
}

// Other blocks may go on before this thread does: between what it has done and what follows, a GPU
// runs any number of them.
void let_others_go();
// The thread waits for something that another block does, and looks again when this returns.
void wait_for_others();
// What blocks wait for may have come.
void tell_others();
// For tests of the tests: turns are not waited for.
bool ignores_turns();
void ignore_turns(bool ignores);

// Copies that may happen any time from now on until they are waited for: they happen then, or when
// the thread ends.
void copy_later(void* to, const void* from, std::size_t bytes);
void commit_copies();
void wait_for_copies(int left);

// Work that reads and writes when it is waited for and no earlier, as wgmma may. fence_work() comes
// between the last wait and the next work: registers are not to change after it.
void work_later(std::function<void()> work);
void fence_work();
void commit_work();
void wait_for_work(int left);
// What this thread has copied is seen by work that it asks for later.
void show_copies();

// What the lanes of a warp bring to an instruction, and get from it.
struct WarpOperands {
  static constexpr std::size_t kBytes = 64;
  using Operand = std::array<std::byte, kBytes>;
  std::array<Operand, kLanes> in, out;
};
struct Arrival {
  WarpOperands* operands = nullptr;
  int lane = 0;
  bool last = false;  // all others have arrived and wait
};
// The current lane arrives at an instruction of its warp; `what` tells one from another.
Arrival arrive_in_warp(const void* what, const void* in, std::size_t bytes);
void release_warp();  // by the last one
void wait_for_warp();

// One instruction of a whole warp: `work(in, out)` is done once, on arrays of what the lanes bring
// and get.
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

// What CUDA C++ knows everywhere in a kernel.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
