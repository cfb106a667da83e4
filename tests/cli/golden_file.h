// Golden files: commands and their exact output.
//
//   $ tpsim plna
//   tpsim: error: unknown command 'plna' (...)
//   [exit 2]
//
// A line with "$ " holds a command. The lines after it are both output streams, then the exit code
// unless it is 0. Lines before the first command are a comment.
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

// Runs a command in `folder` in a shell, with TPSIM_DATA set to files/data in the folder, without
// terminal or colour. Output that differs between runs is normalized: durations become TIME, and
// numbers are rounded to six digits, because compilers differ in later digits.
std::string run_golden(const std::string& command, const std::filesystem::path& folder);

}  // namespace tpsim::test
