#include "cli/options/wrapping.h"

#include <algorithm>
#include <vector>

#include "core/base/text.h"

namespace tpsim::cli {

std::string printable(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool second_controls =
        byte == 0xC2 && next >= 0x80 && next < 0xA0;  // control characters U+0080 to U+009F
    if (second_controls) ++i;
    clean += byte < 0x20 || byte == 0x7F || second_controls ? '?' : text[i];
  }
  return clean;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  bool colour = false;  // inside of a color sequence, ESC [ to m
  for (const char c : text) {
    if (c == '\033') colour = true;
    const bool starts =
        (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // first byte of a code point
    if (!colour && starts) ++width;
    if (colour && c == 'm') colour = false;
  }
  return width;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = cut_off(text, " ");
    const std::size_t taken = display_width(word);
    if (column > 0 && column + 1 + taken > width) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n" + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += taken;
  }
  return out;
}

namespace {

constexpr std::string_view kComment = "   # ";

// Returns the positions at which gaps of two or more spaces end.
std::vector<std::size_t> gaps_of(std::string_view line) {
  std::vector<std::size_t> ends;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
    const std::size_t gap = line.find("  ", at);
    if (gap == std::string_view::npos) break;
    at = std::min(line.find_first_not_of(' ', gap), line.size());
    ends.push_back(at);
  }
  return ends;
}

// Wraps a line that is prose, which has at most kMostGaps gaps, between a label, text and remarks.
// Lines with more gaps are rows of a table and are not wrapped.
std::string fitted_line(std::string_view line, std::size_t columns) {
  constexpr std::size_t kMostGaps = 3, kLeastText = 20;
  const std::vector<std::size_t> gaps = gaps_of(line);
  const bool is_command = line.ends_with('\\') || line.find(kComment) != std::string_view::npos;
  if (display_width(line) <= columns || gaps.size() > kMostGaps || is_command) {
    return std::string(line);
  }
  std::size_t head = std::min(line.find_first_not_of(' '), line.size());
  const bool labelled =
      !gaps.empty() && display_width(line.substr(0, gaps.front())) + kLeastText <= columns;
  if (labelled) head = gaps.front();
  const std::size_t hang = display_width(line.substr(0, head)) + (labelled ? 0 : 2);
  if (hang + kLeastText > columns) return std::string(line);
  return std::string(line.substr(0, head)) + wrapped(line.substr(head), columns - hang, hang);
}

// Returns the end of the shell word that starts at `at`.
std::size_t word_end(std::string_view text, std::size_t at) {
  bool quoted = false;
  for (; at < text.size() && (quoted || text[at] != ' '); ++at) {
    if (text[at] == '\'') quoted = !quoted;
  }
  return at;
}

}  // namespace

std::string fitted(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += fitted_line(text.substr(0, end), columns);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string continued(std::string_view command, std::size_t columns) {
  const std::size_t start = std::min(command.find_first_not_of(' '), command.size());
  const std::size_t comment = std::min(command.find(kComment), command.size());
  std::string out(command.substr(0, start));
  std::size_t column = start;
  for (std::size_t at = start; at < comment;) {
    const std::size_t end = std::min(word_end(command, at), comment);
    const std::size_t taken = display_width(command.substr(at, end - at));
    if (column > start && column + 1 + taken + 2 > columns) {
      out += " \\\n" + std::string(start + 4, ' ');
      column = start + 4;
    } else if (column > start) {
      out += ' ';
      ++column;
    }
    out += command.substr(at, end - at);
    column += taken;
    at = std::min(command.find_first_not_of(' ', end), comment);
  }
  const std::string_view rest = command.substr(comment);
  if (column + display_width(rest) <= columns || rest.empty()) return out + std::string(rest);
  return out + " \\\n" + std::string(start + 4, ' ') + std::string(rest.substr(3));
}

}  // namespace tpsim::cli
