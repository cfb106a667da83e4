// Memory that this process can still take on its machine.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/units.h"

namespace tpsim {

struct FreeMemory {
  Bytes bytes;
  std::string limit;  // the tightest limit: "this machine", "the cgroup /job_7", "ulimit -v"
};

// The smallest of MemAvailable, the unused part of each memory limit of the process's cgroups
// (version 1 or 2; file cache counts as unused), and the unused part of the address space.
// Reads /proc and /sys/fs/cgroup below `root`; a file that is missing there sets no limit. Swap is
// not counted.
FreeMemory free_memory(const std::filesystem::path& root = "/");

}  // namespace tpsim
