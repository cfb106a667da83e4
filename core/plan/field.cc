#include "core/plan/field.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/plan/ratio.h"

namespace tpsim {
namespace {

std::string dashed_name(const FieldFacts& field) {
  std::string name(field.option.empty() ? field.key : field.option);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Result<std::int64_t> number_in(const FieldFacts& field, std::string_view text) {
  const auto number = parse_number<std::int64_t>(text);
  if (!number || *number < field.least || *number > field.most) {
    return bad_input(fmt::format("'{}' of {} is not a whole number from {} to {}", text,
                                 dashed_name(field), field.least, field.most));
  }
  return *number;
}

Result<std::int64_t> word_in(const FieldFacts& field, std::string_view text) {
  TPSIM_TRY(const std::size_t chosen,
            choose("value", text, texts_of(field.words, &FieldWord::word)));
  return field.words[chosen].value;
}

// Parses "attn,moe_router"; '+' and blanks also separate. The word for an empty set stands alone.
Result<std::int64_t> set_in(const FieldFacts& field, std::string_view text) {
  std::int64_t all = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(",+ ", at), text.size());
    const std::string_view one = text.substr(at, end - at);
    TPSIM_TRY(const std::int64_t word, word_in(field, one));
    if (word == 0 && one.size() != text.size()) {
      return bad_input(fmt::format("'{}' excludes other values, but '{}' has some", one, text));
    }
    all |= word;
    at = end + 1;
  }
  return all;
}

std::string set_text(const FieldFacts& field, std::int64_t value) {
  std::string text;
  for (const FieldWord& word : field.words) {
    const bool is_one = word.value != 0 && (word.value & (word.value - 1)) == 0;
    if (is_one && (value & word.value) != 0) {
      text += (text.empty() ? "" : ",") + std::string(word.word);
    }
  }
  return text;
}

std::string number_placeholder(const FieldFacts& field) {
  constexpr std::int64_t kFew = 8;
  if (field.most - field.least >= kFew) return "N";
  std::string text;
  for (std::int64_t n = field.least; n <= field.most; ++n) {
    text += (text.empty() ? "" : "|") + std::to_string(n);
  }
  return text;
}

}  // namespace

std::string option_of(const FieldFacts& field) { return "--" + dashed_name(field); }

std::string placeholder_of(const FieldFacts& field) {
  const std::string words =
      joined_text(field.words, "|", [](const FieldWord& word) { return word.word; });
  switch (field.kind) {
    case FieldKind::kNumber: return number_placeholder(field);
    case FieldKind::kSwitch: return "on|off";
    case FieldKind::kWord: return words;
    case FieldKind::kWordOrCount:
    case FieldKind::kWordOrRatio: return words + "|N";
    case FieldKind::kSet: return words + "[,...]";
    case FieldKind::kList: return "N,N,...";
  }
  return "";
}

Result<std::int64_t> parse_value(const FieldFacts& field, std::string_view text) {
  switch (field.kind) {
    case FieldKind::kNumber:
    case FieldKind::kList: return number_in(field, text);
    case FieldKind::kSwitch:
      if (text == "0" || text == "1") return std::int64_t{text == "1" ? 1 : 0};
      return word_in(field, text);
    case FieldKind::kWord: return word_in(field, text);
    case FieldKind::kWordOrCount: {
      const auto count = parse_number<std::int64_t>(text);
      const bool is_count = count && *count != 0 && *count >= field.least;
      if (is_count && *count <= field.most) return *count;
      return word_in(field, text);
    }
    case FieldKind::kWordOrRatio: {
      const auto ratio = ratio_value(parse_number<double>(text).value_or(0));
      return ratio ? *ratio : word_in(field, text);
    }
    case FieldKind::kSet: return set_in(field, text);
  }
  return word_in(field, text);
}

std::string text_of(const FieldFacts& field, std::int64_t value) {
  for (const FieldWord& word : field.words) {
    if (word.value == value) return std::string(word.word);
  }
  if (field.kind == FieldKind::kSet) return set_text(field, value);
  if (field.kind != FieldKind::kWordOrRatio) return std::to_string(value);
  return fmt::format("{}", static_cast<double>(value) / kThousandths);
}

}  // namespace tpsim
