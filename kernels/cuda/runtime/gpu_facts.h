// Properties of a GPU that a profile contains, besides the times of ops.
#pragma once

#include <cstdint>
#include <string>

namespace tpsim {

struct GpuFacts {
  std::string name;
  int multiprocessors = 0;
  int capability_major = 0, capability_minor = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;  // L2
  int runtime_version = 0, driver_version = 0;
};
// Returns the properties of the GPU that this process uses.
GpuFacts gpu_facts();

}  // namespace tpsim
