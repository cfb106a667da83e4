// A report of Nsight Systems as `nsys export --type sqlite` writes it: the same times of a rank's
// kernels as a trace of torch.profiler holds (evidence/logs/kernel_trace.h).
//
// Read are CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET, StringIds, and of NVTX_EVENTS the
// ranges that mark steps: "step 7", "iteration7", "ProfilerStep#7". A report may hold all GPUs of
// a node: the one with the least number counts, and the marks of the process that used it.
// Formats: Nsight Systems 2021 to 2025.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "evidence/logs/kernel_trace.h"

namespace tpsim::cli {

// Whether a file begins as every SQLite database does.
inline bool is_nsys_report(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

// An error for what is no whole database, no such report, without kernels or marked steps; and
// where tpsim was built without SQLite.
Result<KernelTimes> read_nsys_report(std::string_view bytes, const std::string& file);
// Of a file that is too large to be held in memory.
Result<KernelTimes> read_nsys_report_file(const std::string& path);

}  // namespace tpsim::cli
