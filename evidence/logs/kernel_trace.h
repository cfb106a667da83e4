// Kernel times of a step by class, and idle time, from a torch.profiler trace of one rank (Kineto's
// JSON, the format of chrome://tracing).
//
// Steps are marked by the program with prof.step() ("ProfilerStep#7"). Kernels are classified by
// the names of cuBLAS, CUTLASS, cuDNN, flash attention, Tensile and NCCL. Waiting for other ranks
// happens inside collectives and is included in them. Formats: Kineto of PyTorch 1.13 to 2.7.
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
// Returns the class by the kernel's name. Copies have a category in the trace instead.
KernelClass class_of_kernel(std::string_view name);

// All calls of one collective, such as "AllReduce".
struct TracedCollective {
  std::string name;
  double calls = 0;  // per step
  Seconds time;      // per step, including overlapped time
};

struct KernelTimes {
  std::vector<Seconds> steps;                 // consecutive steps
  std::int64_t gpus = 0, rank = 0;            // of the job; 0 if the trace does not state them
  Seconds step;                               // mean; the values below are means too
  Seconds by_class[kKernelClassCount];        // sums over kernels, including overlapped time
  Seconds exposed;                            // a collective runs and no other kernel
  Seconds idle;                               // no kernel runs
  std::vector<TracedCollective> collectives;  // longest first

  Seconds operator[](KernelClass one) const { return by_class[static_cast<std::size_t>(one)]; }
};

// Whether the text starts like such a trace.
bool is_kernel_trace(std::string_view text);

// Returns an error for a trace without marked steps, without kernels, or with several devices.
Result<KernelTimes> read_kernel_trace(std::string_view text, const std::string& file);

// Profiled kernels and marked steps of one rank, from any format.
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
  // Host steps are adjacent; device steps have gaps.
  std::vector<TracedSpan> host_steps, device_steps;
  std::set<std::int64_t> devices;
};

// Returns the means over the marked steps. Error if there are none, or if they have no duration.
// `how_to_mark` is the hint if there are none.
Result<KernelTimes> kernel_times(const TracedRank& rank, const std::string& file,
                                 const char* how_to_mark);

}  // namespace tpsim
