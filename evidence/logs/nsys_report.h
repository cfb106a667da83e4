// Reads a Nsight Systems report written by `nsys export --type sqlite`. Returns the same kernel
// times as a torch.profiler trace (evidence/logs/kernel_trace.h).
//
// Tables: CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET, StringIds, and NVTX_EVENTS for step
// ranges ("step 7", "iteration7", "ProfilerStep#7"). If the report has all GPUs of a node, the
// lowest GPU number counts, with the marks of its process. Formats: Nsight Systems 2021 to 2025.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "evidence/logs/kernel_trace.h"

namespace tpsim::cli {

// Whether the bytes start like a SQLite database.
inline bool is_nsys_report(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

// Returns an error for a truncated database, another kind of database, and missing kernels or step
// marks. Also if tpsim was built without SQLite.
Result<KernelTimes> read_nsys_report(std::string_view bytes, const std::string& file);
// Likewise, for a file that is too large for memory.
Result<KernelTimes> read_nsys_report_file(const std::string& path);

}  // namespace tpsim::cli
