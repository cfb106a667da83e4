// Mean kernel times per step by class, and idle time, from a torch.profiler trace of one rank
// (Kineto's JSON, the format of chrome://tracing).
//
// The program must mark steps with prof.step() ("ProfilerStep#7"). Kernels are classified by the
// kernel names of cuBLAS, CUTLASS, cuDNN, flash attention, Tensile and NCCL. Collective times
// include waiting for other ranks. Tested with Kineto of PyTorch 1.13 to 2.7.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace tpsim {

enum class KernelClass : std::uint8_t { kProducts, kAttention, kOthers, kCopies, kCollectives };
inline constexpr int kKernelClassCount = static_cast<int>(KernelClass::kCollectives) + 1;
// Returns the class that a kernel name indicates. Copies are classified by their trace category
// instead.
KernelClass class_of_kernel(std::string_view name);

// All calls of one collective, such as "AllReduce".
struct TracedCollective {
  std::string name;
  double calls = 0;  // per step
  Seconds time;      // per step, including overlapped time
};

struct KernelTimes {
  std::vector<Seconds> steps;                 // duration of each marked step
  std::int64_t gpus = 0, rank = 0;            // world size and rank of the job; 0 if not stated
  Seconds step;                               // mean step; the times below are means per step too
  Seconds by_class[kKernelClassCount];        // sums over kernels, including overlapped time
  Seconds exposed;                            // time in which only collectives run
  Seconds idle;                               // no kernel runs
  std::vector<TracedCollective> collectives;  // longest first

  Seconds operator[](KernelClass one) const { return by_class[static_cast<std::size_t>(one)]; }
};

// Whether the text starts like a torch.profiler trace.
bool is_kernel_trace(std::string_view text);

// Returns an error if the trace has no marked steps, no kernels, or kernels of several devices.
Result<KernelTimes> read_kernel_trace(std::string_view text, const std::string& file);

// Kernels and marked steps of one rank, independent of the file format.
struct TracedSpan {
  double begin = 0, end = 0;  // microseconds
};
struct TracedKernel {
  TracedSpan span;
  KernelClass kind{};
  std::string name;
};
struct TracedRank {
  std::vector<TracedKernel> kernels;
  // Steps marked on the host are adjacent. Steps marked on the device have gaps between them.
  std::vector<TracedSpan> host_steps, device_steps;
  std::set<std::int64_t> devices;
};

// Returns means over the marked steps. Returns an error if the trace marks none, with `how_to_mark`
// as its hint, or if the steps have no duration.
Result<KernelTimes> kernel_times(const TracedRank& rank, const std::string& file,
                                 const char* how_to_mark);

}  // namespace tpsim
