// The rules about where things may stand, checked by reading the tree. Not a parser: it looks at
// lines, so it sees what a grep would see.
//
// A folder includes only itself and folders below it, by the path from the root. JSON stays in
// core/; features select source files, never #ifs; what only runs on a device stays out of the
// folders that plan. Sources are listed by name in CMake, all of them, and are short. A namespace
// has no two types of one name, nor two functions of one name with the same parameters, in two
// headers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpsim {

struct BrokenRule {
  std::string where;  // "sim/price.cc:12" or "core/utils"
  std::string rule;
};

// Every rule that the tree under `root` breaks, in the order of its paths. Hidden folders and build
// folders are passed over.
std::vector<BrokenRule> broken_rules(const std::filesystem::path& root);

// One line per broken rule.
std::string to_string(const std::vector<BrokenRule>& broken);

}  // namespace tpsim
