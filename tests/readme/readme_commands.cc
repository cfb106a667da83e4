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

// True if `line` equals `pattern`, in which "..." matches any text.
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

// True if shown[i..] matches lines[j..]. `furthest` is the first shown line that no attempt
// matched.
bool matches_lines(const std::vector<std::string>& shown, const std::vector<std::string>& lines,
                   std::size_t i, std::size_t j, std::size_t& furthest) {
  furthest = std::max(furthest, i);
  if (i == shown.size()) return j == lines.size();
  if (shown[i] != "...") {
    return j < lines.size() && matches(shown[i], lines[j]) &&
           matches_lines(shown, lines, i + 1, j + 1, furthest);
  }
  for (std::size_t next = j; next <= lines.size(); ++next) {
    if (matches_lines(shown, lines, i + 1, next, furthest)) return true;
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
  if (shown.empty()) return "";
  const std::vector<std::string> lines = lines_of(printed);
  std::size_t furthest = 0;
  if (matches_lines(shown, lines, 0, 0, furthest)) return "";
  return furthest < shown.size() ? shown[furthest] : "(the end of the output)";
}

}  // namespace tpsim
