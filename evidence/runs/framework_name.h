// Splits the framework column of a run table into name, version and ZeRO stage. "DeepSpeed 0.14.2,
// ZeRO-3" and "DeepSpeed ZeRO-3" have the same name.
#pragma once

#include <optional>
#include <string>

namespace tpsim {

struct FrameworkName {
  std::string name;         // in lower case, without version, commit and ZeRO stage
  std::string version;      // "0.14.2"; the first one if several are stated; "" if none is
  std::optional<int> zero;  // ZeRO stage, 0 to 3
};

FrameworkName split_framework(const std::string& text);

}  // namespace tpsim
