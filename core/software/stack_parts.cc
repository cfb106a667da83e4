#include "core/software/stack_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

struct OptionNames {
  std::array<std::string, kStackPartCount> names;
  OptionNames() {
    for (std::size_t i = 0; i < part_rows().size(); ++i) {
      TPSIM_CHECK(static_cast<std::size_t>(part_rows()[i].part) == i, "rows stand in their order");
      names[i] = "--" + std::string(part_rows()[i].option.empty() ? part_rows()[i].key
                                                                  : part_rows()[i].option);
      std::replace(names[i].begin(), names[i].end(), '_', '-');
    }
  }
};

}  // namespace

const PartRow& row_of(StackPart part) { return part_rows()[static_cast<std::size_t>(part)]; }

std::string_view option_of(StackPart part) {
  static const OptionNames options;
  return options.names[static_cast<std::size_t>(part)];
}

std::string placeholder_of(const PartRow& row) {
  if (row.is_switch) return "on|off";
  const std::string text =
      joined_text(row.words, "|", [](const PartWord& word) { return word.word; });
  if (row.is_set) return text + "[,...]";
  return row.most_count > 0 || row.is_ratio ? text + "|N" : text;
}

namespace {

Result<std::int64_t> word_of(const PartRow& row, std::string_view text) {
  TPSIM_TRY(const std::size_t chosen, choose("value", text, texts_of(row.words, &PartWord::word)));
  return row.words[chosen].value;
}

// Parses "attn,moe_router"; '+' and blanks also separate. The word for an empty set stands alone.
Result<std::int64_t> set_of(const PartRow& row, std::string_view text) {
  std::int64_t all = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(",+ ", at), text.size());
    const std::string_view one = text.substr(at, end - at);
    TPSIM_TRY(const std::int64_t word, word_of(row, one));
    if (word == 0 && one.size() != text.size()) {
      return bad_input(fmt::format("'{}' excludes other values, but '{}' has some", one, text));
    }
    all |= word;
    at = end + 1;
  }
  return all;
}

constexpr double kThousandths = 1000, kGreatestRatio = 1e6;

}  // namespace

Result<std::int64_t> parse_value(const PartRow& row, std::string_view text) {
  if (row.is_switch && (text == "0" || text == "1")) return std::int64_t{text == "1" ? 1 : 0};
  if (row.most_count > 0) {
    const auto count = parse_number<std::int64_t>(text);
    if (count && *count >= 1 && *count <= row.most_count) return *count;
  }
  if (row.is_ratio) {
    const auto ratio = parse_number<double>(text);
    if (ratio && *ratio >= 1 && *ratio <= kGreatestRatio) {
      return static_cast<std::int64_t>(std::lround(*ratio * kThousandths));
    }
  }
  return row.is_set ? set_of(row, text) : word_of(row, text);
}

std::string text_of(const PartRow& row, std::int64_t value) {
  for (const PartWord& word : row.words) {
    if (word.value == value) return std::string(word.word);
  }
  if (row.is_ratio) return fmt::format("{}", static_cast<double>(value) / kThousandths);
  if (!row.is_set) return std::to_string(value);
  std::string text;
  for (const PartWord& word : row.words) {
    const bool is_one = word.value != 0 && (word.value & (word.value - 1)) == 0;
    if (is_one && holds(value, word.value))
      text += (text.empty() ? "" : ",") + std::string(word.word);
  }
  return text;
}

std::string to_string(const PartValues& parts) {
  return joined_text(parts, ", ", [](const auto& one) {
    const PartRow& row = row_of(one.first);
    return fmt::format("{}={}", row.key, text_of(row, one.second));
  });
}

}  // namespace tpsim
