// One knob of a plan or of the training software: its key in files, its option, its values, and
// the terms of the step that it changes. Files, options, tables, the window and Python read the
// same row.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/plan/step_term.h"

namespace tpsim {

enum class FieldKind : std::uint8_t {
  kNumber,       // a whole number from `least` to `most`
  kSwitch,       // 0 and 1: "off" and "on" in options, false and true in files
  kWord,         // one of `words`
  kWordOrCount,  // one of `words`, or a whole number from 1 to `most`
  kWordOrRatio,  // one of `words`, or a number from 1 on, stored in thousandths
  kSet,          // bits: "attn,moe_router"; a word may stand for several bits
  kList,         // one number for each model chunk
};
template <>
inline constexpr auto kEnumNames<FieldKind> =
    words<7>("number switch word word_or_count word_or_ratio set list");

struct FieldWord {
  std::int64_t value = 0;
  std::string_view word;      // in options and files
  std::string_view tag = {};  // in names and filters of plans; unique among all settings
};

struct FieldFacts {
  std::string_view key = {};      // in files, tables and Python
  std::string_view option = {};   // only if the option is not the key with '-' for '_'
  std::string_view title = {};    // in sentences and on the controls of the window
  std::string_view help = {};     // one line, in --help and docs/files.md
  std::string_view meaning = {};  // a sentence or two of explanation
  FieldKind kind{};
  std::int64_t least = 1, most = 1 << 20;
  std::span<const FieldWord> words = {};
  StepTerms terms = {};      // terms of the step that the value changes
  bool is_executed = false;  // the reference model executes the value; else it is priced only
};

// A knob of an Owner. A value is a number, 0 or 1 for a switch, or the number of an enumerator. The
// default is the value of Owner{}. Lists have no access.
template <class Owner>
struct Field : FieldFacts {
  std::int64_t (*get)(const Owner&) = nullptr;
  void (*set)(Owner&, std::int64_t) = nullptr;

  bool is_list() const { return kind == FieldKind::kList; }
};

std::string option_of(const FieldFacts& field);       // "--norm-kernel"
std::string placeholder_of(const FieldFacts& field);  // "N", "on|off", "none|full"
// Parses a value; 0 and 1 are valid for a switch. The error names the nearest valid value.
Result<std::int64_t> parse_value(const FieldFacts& field, std::string_view text);
std::string text_of(const FieldFacts& field, std::int64_t value);

// The values of an enumeration with their names.
template <class E, std::int64_t value_of(E)>
constexpr auto field_words() {
  std::array<FieldWord, kEnumNames<E>.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {value_of(static_cast<E>(i)), kEnumNames<E>[i]};
  }
  return words;
}
template <class E>
constexpr std::int64_t enumerator_number(E value) {
  return static_cast<std::int64_t>(value);
}
template <class E>
inline constexpr auto kFieldWords = field_words<E, enumerator_number<E>>();
inline constexpr auto kSwitchWords = std::to_array<FieldWord>({{0, "off"}, {1, "on"}});

// Adds the access to a member: field_at<Plan, &Plan::degrees, &ParallelDegrees::tp>(facts). A bool
// becomes a switch, an enumerator a word with the names of its enumeration, unless `facts` has
// words.
template <class Owner, auto... path>
constexpr Field<Owner> field_at(const FieldFacts& facts) {
  using Value = std::remove_cvref_t<decltype((std::declval<Owner&>().*....*path))>;
  Field<Owner> field{facts};
  if constexpr (std::is_same_v<Value, bool>) {
    field.kind = FieldKind::kSwitch;
    if (field.words.empty()) field.words = kSwitchWords;
  } else if constexpr (std::is_enum_v<Value>) {
    field.kind = FieldKind::kWord;
    if constexpr (HasEnumNames<Value>) {
      if (field.words.empty()) field.words = kFieldWords<Value>;
    }
  }
  field.get = [](const Owner& owner) { return static_cast<std::int64_t>((owner.*....*path)); };
  field.set = [](Owner& owner, std::int64_t value) {
    (owner.*....*path) = static_cast<Value>(value);
  };
  return field;
}

}  // namespace tpsim
