// Rules about the places of includes, features and names, checked by reading the tree. Not a
// parser: works line by line, like grep.
//
// A folder includes only itself and lower folders, by the path from the root. JSON is used only in
// core/. Features select source files and are never #ifs. Code that runs on a device is not in the
// folders that plan. All sources are listed by name in CMake, and are short. Two headers never
// declare types of the same name in one namespace, or functions of the same name with the same
// parameters.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpsim {

struct BrokenRule {
  std::string where;  // "sim/price.cc:12" or "core/utils"
  std::string rule;
};

// Returns all violations in the tree below `root`, in the order of paths. Skips hidden folders and
// build folders.
std::vector<BrokenRule> broken_rules(const std::filesystem::path& root);

// One line per broken rule.
std::string to_string(const std::vector<BrokenRule>& broken);

}  // namespace tpsim
