// A trace of torch.profiler (Kineto's JSON, which chrome://tracing opens) as the time of a step's
// kernels by class: what one rank's device did, and when it did nothing.
//
// Steps are those that the program marked with prof.step() ("ProfilerStep#7"). Kernels are told
// apart by their names, as cuBLAS, CUTLASS, cuDNN, flash attention, Tensile and NCCL call them.
// What waits for other ranks waits inside a collective, and is counted there. Formats: Kineto of
// PyTorch 1.13 to 2.7.
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
// By a kernel's name alone; copies are told by their category.
KernelClass class_of_kernel(std::string_view name);

// All calls of one kind of collective: "AllReduce".
struct TracedCollective {
  std::string name;
  double calls = 0;  // of a step
  Seconds time;      // of a step, hidden behind others or not
};

struct KernelTimes {
  std::vector<Seconds> steps;                 // one after the other
  std::int64_t gpus = 0, rank = 0;            // of the job, where the trace says so; else 0
  Seconds step;                               // mean; so are all that follow
  Seconds by_class[kKernelClassCount];        // sums over kernels, whatever runs beside them
  Seconds exposed;                            // collectives run and nothing else does
  Seconds idle;                               // nothing runs
  std::vector<TracedCollective> collectives;  // longest first

  Seconds operator[](KernelClass one) const { return by_class[static_cast<std::size_t>(one)]; }
};

// Whether a text begins as such a trace does.
bool is_kernel_trace(std::string_view text);

// An error for a trace without marked steps, without kernels, or of several devices.
Result<KernelTimes> read_kernel_trace(std::string_view text, const std::string& file);

// What a profiler saw of one rank: kernels and marked steps, whichever program wrote them down.
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
  // Marks of the host abut; those of the device leave out what lies between.
  std::vector<TracedSpan> host_steps, device_steps;
  std::set<std::int64_t> devices;
};

// Sums over the marked steps; an error where there are none, or where they take no time.
// `how_to_mark` mends the first.
Result<KernelTimes> kernel_times(const TracedRank& rank, const std::string& file,
                                 const char* how_to_mark);

}  // namespace tpsim
