#include "core/model/expert_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/files.h"
#include "core/base/leading_number.h"

namespace tpsim {
namespace {

constexpr std::string_view kBetween = " \t,;\r";
constexpr std::size_t kMostBytes = 64 << 20;
constexpr double kMostTokens = 1e15;

// Appends the numbers of a line; error for text that is not a number.
Status add_numbers(std::string_view line, const std::string& where, std::vector<double>& out) {
  line = line.substr(0, line.find('#'));
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return Ok{};
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(kBetween));
    line.remove_prefix(word.size());
    const std::optional<double> count = parse_number<double>(word);
    if (!count || !(*count >= 0) || *count > kMostTokens) {
      return bad_input(fmt::format("'{}' is not a token count", word), where,
                       "give numbers from 0 to 1e15, one for each expert");
    }
    out.push_back(*count);
  }
}

}  // namespace

Result<std::vector<double>> parse_expert_counts(std::string_view text, std::int64_t experts,
                                                const std::string& name) {
  const auto each = static_cast<std::size_t>(experts);
  std::vector<double> counts;
  std::int64_t number = 0;
  bool one_by_one = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string where = fmt::format("{}:{}", name, ++number);
    const std::size_t before = counts.size();
    TPSIM_TRY_STATUS(add_numbers(line, where, counts));
    const std::size_t of_line = counts.size() - before;
    if (of_line == 0) continue;
    if (before == 0) one_by_one = of_line == 1;
    if (of_line != (one_by_one ? 1 : each)) {
      return bad_input(fmt::format("the line has {} counts for {} experts", of_line, experts),
                       where,
                       "give one count per expert on each line, or a single count on each line");
    }
  }
  if (counts.empty() || counts.size() % each != 0) {
    return bad_input(fmt::format("the file has {} counts for {} experts", counts.size(), experts),
                     name, "give one count per expert, for one layer or several");
  }
  return counts;
}

Result<std::vector<double>> read_expert_counts(const std::filesystem::path& path,
                                               std::int64_t experts) {
  TPSIM_TRY(const std::string text, read_file(path, kMostBytes));
  return parse_expert_counts(text, experts, path.string());
}

}  // namespace tpsim
