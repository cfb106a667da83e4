// Files of profilers that Python's standard library reads: memory snapshots of PyTorch, and
// databases of Nsight Systems. tpsim_recipes reads them in a process without rights; the readers
// are python/tpsim_recipes/memory_snapshot.py and nsys_report.py.
//
// Errors: kMissing without python3, else the reason why a file is refused. No class or function
// that a pickle names is created, and no view of a database is run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "evidence/logs/kernel_trace.h"

namespace tpsim {

// Memory that was allocated by one site.
struct SiteMemory {
  std::string site;  // "attention.py:120 forward"; or why it is unknown
  std::int64_t blocks = 0;
  Bytes bytes;
};

// Memory after start-up, which ends when 95 % of the memory that is kept until the recording ends
// has been allocated: weights and optimizer state. Before, a model may exist unsharded.
struct SnapshotPeak {
  Bytes allocated;               // highest, as torch.cuda.max_memory_allocated()
  Bytes reserved;                // highest, as torch.cuda.max_memory_reserved()
  Bytes kept;                    // part of `allocated` that is not freed until the recording ends
  Bytes missing;                 // size of a request that ran out of memory; 0: none did
  Bytes start_up;                // highest allocated memory before; 0: recorded after start-up
  std::int64_t events = 0;       // number of recorded events, those of start-up included
  std::vector<SiteMemory> live;  // contents of `allocated`, largest first
};

// Returns the peak of the GPU with the most memory. `bytes`: the pickle that
// torch.cuda.memory._dump_snapshot() writes. `file` is only used in error messages.
Result<SnapshotPeak> read_snapshot_peak(std::string_view bytes, const std::string& file);

// Whether the bytes start like a SQLite database.
inline bool is_nsys_report(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}
// Reads a report that `nsys export --type sqlite` wrote. Returns the same kernel times as a
// torch.profiler trace.
Result<KernelTimes> read_nsys_report(std::string_view bytes, const std::string& file);
// Like read_nsys_report(), for a file that is too large to be read into memory.
Result<KernelTimes> read_nsys_report_file(const std::string& path);

}  // namespace tpsim
