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

// Returns the smallest of three values: MemAvailable, the unused part of each memory limit of the
// process's cgroups, and the unused part of the address space. Covers cgroup versions 1 and 2; file
// cache counts as unused, swap is not counted. Reads /proc and /sys/fs/cgroup below `root`; a
// missing file sets no limit.
FreeMemory free_memory(const std::filesystem::path& root = "/");

}  // namespace tpsim
