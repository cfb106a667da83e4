#include "core/base/text_table.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>

#include "core/base/check.h"
#include "core/base/text.h"

namespace tpsim {

bool TableBlock::has(std::string_view word) const {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.first == word; });
}

std::string_view TableBlock::rest_of(std::string_view word) const {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const auto& line) { return line.first == word; });
  return found == lines.end() ? std::string_view("") : found->second;
}

namespace {

// Returns a copy, which lives as long as the program, with a null character in place of each line
// break.
std::string_view ended_text(std::span<const unsigned char> text) {
  static std::mutex mutex;
  static std::deque<std::string> all;
  const std::lock_guard lock(mutex);
  std::string& copy = all.emplace_back(text.begin(), text.end());
  std::replace(copy.begin(), copy.end(), '\n', '\0');
  return copy;
}

}  // namespace

std::vector<TableBlock> read_table(std::span<const unsigned char> text) {
  std::vector<TableBlock> blocks;
  std::string_view rest = ended_text(text);
  while (!rest.empty()) {
    const std::string_view whole = cut_off(rest, std::string_view("\0", 1));
    std::string_view line = trimmed(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const std::string_view word = cut_off(line, " ");
    if (whole.starts_with(' ')) {
      TPSIM_CHECK(!blocks.empty(), "a table starts with an indented line");
      blocks.back().lines.emplace_back(word, line);
    } else {
      blocks.push_back({word, line});
    }
  }
  return blocks;
}

}  // namespace tpsim
