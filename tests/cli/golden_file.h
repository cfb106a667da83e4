// Golden files: commands and exactly what they print.
//
//   $ tpsim plna
//   tpsim: error: unknown command 'plna' (...)
//   [exit 2]
//
// Each command stands after "$ " and is followed by what it prints on both streams, then by its
// exit code unless that is 0. Lines before the first command are a comment.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tpsim::test {

struct GoldenCommand {
  std::string command;
  std::string printed;  // with the exit line
};

struct GoldenFile {
  std::string comment;
  std::vector<GoldenCommand> commands;
};

GoldenFile parse_golden(std::string_view text);
std::string to_string(const GoldenFile& file);

// Runs a command in `folder` as a shell does, with TPSIM_DATA set to files/data there, no terminal
// and no colour. What no two runs share is made equal: times taken become TIME, and numbers are
// rounded to six digits, more than two compilers agree on.
std::string run_golden(const std::string& command, const std::filesystem::path& folder);

}  // namespace tpsim::test
