// What a profiler saw of one rank: kernels and marked steps, whichever program wrote them down.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "stacks/kernel_trace.h"

namespace tpsim {

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
