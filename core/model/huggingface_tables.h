// The tables of Hugging Face's model families (huggingface_*.txt) as statements and expressions.
// huggingface_common.txt describes their grammar. Internal to core/model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json/json_fields.h"

namespace tpsim {

// An operator or function with arguments; without arguments a number, a quoted word or a name.
struct Expression {
  enum class Kind : std::uint8_t { kNumber, kWord, kName, kCall };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string text = {};
  std::vector<Expression> arguments = {};
};
using NamedExpression = std::pair<std::string, Expression>;

struct Statement {
  std::string verb;                               // the first word of the line, "=" or "<-"
  std::string name = {};                          // section, place, shape or op
  std::vector<std::string> words = {};            // kind of a read, its keys, and other words
  std::vector<NamedExpression> expressions = {};  // condition, default, parameters or fields
  bool null_is_zero = false;
  std::optional<NumberRange> range = {};
  std::string text = {};  // message
  std::vector<Statement> inner = {};
};

struct TableSection {
  std::vector<NamedExpression> parameters;
  std::vector<Statement> statements;
};

struct EncoderTable {
  std::string key;
  Expression condition;
  std::vector<Statement> statements;
};

// A shaping key that may repeat a value of the model.
struct KnownValue {
  std::string keys;
  bool is_flag = false;
  Expression value;
};

struct FamilyTables {
  std::map<std::string, TableSection, std::less<>> sections, families;
  std::vector<EncoderTable> encoders;
  std::string shaping_keys, other_keys, shorter_families;
  std::vector<KnownValue> known_values;
  std::map<std::string, std::string, std::less<>> unplanned;  // reason by type
};

// Parses the embedded tables. A line that does not fit the grammar is a BugError.
FamilyTables parse_family_tables();
Expression parse_expression(std::string_view text);

// Replaces each {expression} of a text by text_of(expression).
template <class TextOf>
std::string with_values(std::string_view text, TextOf text_of) {
  std::string filled;
  for (std::size_t open = text.find('{'); open != text.npos; open = text.find('{')) {
    const std::size_t close = text.find('}', open);
    filled += text.substr(0, open);
    filled += text_of(parse_expression(text.substr(open + 1, close - open - 1)));
    text.remove_prefix(close + 1);
  }
  return filled += text;
}

}  // namespace tpsim
