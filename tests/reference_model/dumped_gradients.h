// Gradients written by a training run (TrainingRun::dump_gradients), by parameter.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/json/safetensors.h"

namespace tpsim::test {

inline std::map<std::string, std::vector<float>> dumped_gradients(
    const std::filesystem::path& path) {
  std::map<std::string, std::vector<float>> gradients;
  const SafetensorsFile file = *SafetensorsFile::open(path);
  for (const auto& [name, entry] : file.entries()) {
    std::int64_t count = 1;
    for (const std::int64_t extent : entry.shape) count *= extent;
    gradients[name] = *file.read_floats(name, 0, count);
  }
  return gradients;
}

}  // namespace tpsim::test
