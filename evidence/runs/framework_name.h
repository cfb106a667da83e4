// Splits a row's framework into name, version and ZeRO stage. "DeepSpeed 0.14.2, ZeRO-3" and
// "DeepSpeed ZeRO-3" are the same software.
#pragma once

#include <optional>
#include <string>

namespace tpsim {

struct FrameworkName {
  std::string name;         // in lower case, without version, commit and ZeRO stage
  std::string version;      // "0.14.2", the first of several; "" if not stated
  std::optional<int> zero;  // 0 to 3
};

FrameworkName split_framework(const std::string& text);

}  // namespace tpsim
