// The commands that README.md shows with their output.
//
// A fenced block marked `console` holds commands, each after "$ ", and under each the output it
// prints. "..." in an output line stands for any text, on a line of its own for any lines.
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

// The first shown line that the printed text does not go on with; empty when all of it is there.
// Nothing shown matches anything printed.
std::string first_line_missing(const std::vector<std::string>& shown, std::string_view printed);

}  // namespace tpsim
