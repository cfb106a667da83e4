// Commands in README.md and their shown output.
//
// A fenced block marked `console` holds commands, each after "$ ", and below each its output. "..."
// within an output line matches any text; a line "..." matches any lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpsim {

struct ShownCommand {
  int line = 0;  // in the file
  std::string command;
  std::vector<std::string> output;
};

std::vector<ShownCommand> shown_commands(std::string_view markdown);

// Returns the first shown line that the printed text does not continue with; empty if all match. An
// empty output matches everything.
std::string first_line_missing(const std::vector<std::string>& shown, std::string_view printed);

}  // namespace tpsim
