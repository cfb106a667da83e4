// Statements of tables: conditions, assignments and messages over expressions, one a line.
//
// if EXPRESSION: STATEMENT; PLACE = EXPRESSION; note: TEXT; refuse KEY EXPRESSION: WHY -> HINT;
// like SECTION parameters. core/model/huggingface_common.txt describes those of model families, and
// frameworks/launch/facts.h those of training programs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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

// Reads words, names and expressions from the start of a line. A line that does not fit the grammar
// is a BugError.
class LineParser {
 public:
  explicit LineParser(std::string_view line);
  bool is_done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool take(std::string_view symbol);
  void expect(std::string_view symbol) { check(take(symbol), symbol); }
  // Returns the characters up to a space, a colon at the end of a word, or one of `ends`.
  std::string word(std::string_view ends = "");
  std::string text() { return std::string(std::exchange(rest_, {})); }
  // Reads "name = expression, ..." to the end of the line.
  std::vector<NamedExpression> assignments();
  Expression expression() { return operation(0); }
  // Removes a range "in LOW..HIGH" at the end of the line.
  std::optional<NumberRange> range();

 private:
  void check(bool holds, std::string_view wanted) const;
  // Operators by rank; those of a higher rank bind more tightly.
  Expression operation(std::size_t rank);
  Expression primary();

  std::string_view rest_, line_;
};

Expression parse_expression(std::string_view text);
Statement parse_statement(std::string_view text);

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

// A number or a text of an expression, a list of either, or an expression for every layer.
using TableValue = std::variant<double, std::string, std::vector<double>, std::vector<std::string>,
                                const Expression*>;
std::string text_of(const TableValue& value);

// Evaluates expressions: numbers, words, arithmetic and conditions. A subclass gives names their
// values, and adds functions.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual double number(const Expression& expression);
  TableValue value(const Expression& expression);
  std::string text(const Expression& expression) { return text_of(value(expression)); }
  // Returns the text with its expressions in braces replaced by their values.
  std::string filled(std::string_view text);

 protected:
  virtual TableValue named(const std::string& name) = 0;
  virtual TableValue call(const Expression& one);
};
// Functions and operators that all tables have.
inline constexpr std::string_view kCommonFunctions =
    "or and not == != <= >= < > + - * / % if min max sqrt log floor ceil";

}  // namespace tpsim
