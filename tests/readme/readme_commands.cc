// Splits markdown by lines and compares shown with printed output.
#include "tests/readme/readme_commands.h"

#include <algorithm>
#include <sstream>

namespace tpsim {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    line.erase(line.find_last_not_of(" \r") + 1);
    lines.push_back(line);
  }
  return lines;
}

// Whether `line` is `pattern`, whose "..." stand for any text.
bool matches(std::string_view pattern, std::string_view line) {
  const std::size_t dots = pattern.find("...");
  if (dots == std::string_view::npos) return pattern == line;
  if (!line.starts_with(pattern.substr(0, dots))) return false;
  const std::string_view rest = pattern.substr(dots + 3);
  for (std::size_t at = dots; at <= line.size(); ++at) {
    if (matches(rest, line.substr(at))) return true;
  }
  return false;
}

}  // namespace

std::vector<ShownCommand> shown_commands(std::string_view markdown) {
  std::vector<ShownCommand> commands;
  bool in_console = false;
  int number = 0;
  for (const std::string& line : lines_of(markdown)) {
    ++number;
    if (line.starts_with("```")) {
      in_console = line == "```console";
    } else if (in_console && line.starts_with("$ ")) {
      commands.push_back({number, line.substr(2), {}});
    } else if (in_console && !commands.empty()) {
      commands.back().output.push_back(line);
    }
  }
  return commands;
}

std::string first_line_missing(const std::vector<std::string>& shown, std::string_view printed) {
  const std::vector<std::string> lines = lines_of(printed);
  std::size_t next = 0;
  bool gap = false;  // lines may be passed over before the next match
  for (const std::string& wanted : shown) {
    if (wanted == "...") {
      gap = true;
      continue;
    }
    const std::size_t last = gap ? lines.size() : std::min(next + 1, lines.size());
    while (next < last && !matches(wanted, lines[next])) ++next;
    if (next == last) return wanted;
    ++next;
    gap = false;
  }
  const bool all = shown.empty() || gap || next == lines.size();
  return all ? "" : "(the end of the output)";
}

}  // namespace tpsim
