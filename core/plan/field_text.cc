#include "core/plan/field_text.h"

#include <algorithm>
#include <string>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {

extern const std::span<const unsigned char> kFieldTexts;  // settings.txt, parts.txt

namespace {

template <class E>
E named(std::string_view name, const std::array<std::string_view, kEnumNames<E>.size()>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  TPSIM_CHECK(found != names.end(), "the table of fields has an unknown word " + std::string(name));
  return static_cast<E>(found - names.begin());
}

StepTerms terms_in(std::string_view text) {
  StepTerms terms;
  while (!text.empty()) terms.add(named<StepTerm>(cut_off(text, " "), kEnumNames<StepTerm>));
  return terms;
}

// Reads "off=no-sp on=sp".
std::span<const FieldWord> words_in(std::string_view text, const FieldFacts& facts) {
  std::vector<FieldWord> words;
  while (!text.empty()) {
    std::string_view tag = cut_off(text, " ");
    const std::string_view word = cut_off(tag, "=");
    const std::int64_t value = value_in(facts, word);
    words.push_back({value, word, tag});
  }
  return kept(std::move(words));
}

}  // namespace

const TableBlock& field_text(std::string_view key) {
  static const std::vector<TableBlock> kBlocks = read_table(kFieldTexts);
  const auto found = std::find_if(kBlocks.begin(), kBlocks.end(),
                                  [&](const TableBlock& one) { return one.name == key; });
  TPSIM_CHECK(found != kBlocks.end(), "no description of the field " + std::string(key));
  return *found;
}

void describe(FieldFacts& facts) {
  const TableBlock& text = field_text(facts.key);
  facts.title = text.rest_of("title");
  facts.help = text.rest_of("help");
  facts.meaning = text.rest_of("meaning");
  facts.option = text.rest_of("option");
  facts.is_executed = text.has("executed");
  facts.terms = terms_in(text.rest_of("terms"));
  if (text.has("kind")) facts.kind = named<FieldKind>(text.rest_of("kind"), kEnumNames<FieldKind>);
  if (text.has("least")) facts.least = value_in(facts, text.rest_of("least"));
  if (text.has("most")) facts.most = value_in(facts, text.rest_of("most"));
  if (text.has("words")) facts.words = words_in(text.rest_of("words"), facts);
}

std::int64_t value_in(const FieldFacts& facts, std::string_view text) {
  for (const FieldWord& one : facts.words) {
    if (one.word == text) return one.value;
  }
  const auto number = parse_number<std::int64_t>(text);
  TPSIM_CHECK(number.has_value(), "the table of fields has an unknown value " + std::string(text));
  return *number;
}

}  // namespace tpsim
