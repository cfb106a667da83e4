// Memory that this process can still allocate on its machine.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/units.h"

namespace tpsim {

struct FreeMemory {
  Bytes bytes;
  std::string limit;  // the tightest limit: "this machine", "the cgroup /job_7", "ulimit -v"
};

// Returns the smallest of these values:
// - MemAvailable;
// - the unused part of each memory limit of the process's cgroups, version 1 or 2, where file cache
//   counts as unused;
// - the unused part of the address space.
// Swap is not counted. Reads /proc and /sys/fs/cgroup below `root`; a missing file sets no limit.
FreeMemory free_memory(const std::filesystem::path& root = "/");

}  // namespace tpsim
