// Environment variables of a test.
#pragma once

#include <map>
#include <string>

#include "ranks/launcher.h"

namespace tpsim {

inline Environment environment(std::map<std::string, std::string> variables) {
  return [=](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace tpsim
