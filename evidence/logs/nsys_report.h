// Reads a Nsight Systems report written by `nsys export --type sqlite`. Returns the same kernel
// times as a torch.profiler trace (evidence/logs/kernel_trace.h).
//
// Reads the tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET, StringIds, and NVTX_EVENTS for
// step ranges ("step 7", "iteration7", "ProfilerStep#7"). If the report covers several GPUs, only
// the GPU with the lowest number is read, with the step ranges of its process. Tested with Nsight
// Systems 2021 to 2025.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "evidence/logs/kernel_trace.h"

namespace tpsim {

// Whether the bytes start like a SQLite database.
inline bool is_nsys_report(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

// Returns an error if the database is truncated or has no kernels or step ranges, if it is not an
// Nsight report, or if tpsim was built without SQLite.
Result<KernelTimes> read_nsys_report(std::string_view bytes, const std::string& file);
// Like read_nsys_report(), for a file that is too large to be read into memory.
Result<KernelTimes> read_nsys_report_file(const std::string& path);

}  // namespace tpsim
