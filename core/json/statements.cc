#include "core/json/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '@';
}

Expression call_of(std::string name, std::vector<Expression> arguments) {
  return {
      .kind = Expression::Kind::kCall, .text = std::move(name), .arguments = std::move(arguments)};
}

// Splits at '|' and ' '.
std::vector<std::string> alternatives(std::string text) {
  std::replace(text.begin(), text.end(), '|', ' ');
  return words_in(text);
}

// PLACE <- KIND KEY|KEY : EXPRESSION in LOW..HIGH
void parse_read(LineParser& line, Statement& read) {
  read.range = line.range();
  std::string before = line.word(":");
  std::string words = before;
  while (!line.is_done() && !line.take(":")) words += ' ' + line.word(":");
  read.words = words_in(words);
  if (read.words.back().ends_with('?')) {
    read.null_is_zero = true;
    read.words.back().pop_back();
  }
  if (!line.is_done()) read.expressions.emplace_back("", line.expression());
}

std::string number_text(double number) {
  const bool is_whole = std::abs(number) < 1e15 && number == std::floor(number);
  return is_whole ? fmt::format("{}", static_cast<std::int64_t>(number))
                  : fmt::format("{}", number);
}

// Quotients by zero are zero: a file with an error may leave sizes zero.
double arithmetic(std::string_view symbol, double a, double b) {
  if (symbol == "+") return a + b;
  if (symbol == "-") return a - b;
  if (symbol == "*") return a * b;
  if (symbol == "/") return b == 0 ? 0 : a / b;
  if (symbol == "%") return b == 0 ? 0 : std::fmod(a, b);
  if (symbol == "<") return a < b ? 1 : 0;
  if (symbol == ">") return a > b ? 1 : 0;
  if (symbol == "<=") return a <= b ? 1 : 0;
  if (symbol == ">=") return a >= b ? 1 : 0;
  if (symbol == "min") return std::min(a, b);
  return std::max(a, b);
}

}  // namespace

LineParser::LineParser(std::string_view line) : rest_(trimmed(line)), line_(line) {}

bool LineParser::take(std::string_view symbol) {
  if (!rest_.starts_with(symbol)) return false;
  const bool is_word = is_of_name(symbol.back());
  if (is_word && rest_.size() > symbol.size() && is_of_name(rest_[symbol.size()])) return false;
  rest_ = trimmed(rest_.substr(symbol.size()));
  return true;
}

std::string LineParser::word(std::string_view ends) {
  std::size_t length = 0;
  while (length < rest_.size() && rest_[length] != ' ' && ends.find(rest_[length]) == ends.npos) {
    ++length;
  }
  if (length > 0 && rest_[length - 1] == ':') --length;
  check(length > 0, "a word");
  std::string found(rest_.substr(0, length));
  rest_ = trimmed(rest_.substr(length));
  return found;
}

std::vector<NamedExpression> LineParser::assignments() {
  std::vector<NamedExpression> all;
  while (!is_done()) {
    std::string name = word("=");
    expect("=");
    all.emplace_back(std::move(name), expression());
    if (!is_done()) expect(",");
  }
  return all;
}

std::optional<NumberRange> LineParser::range() {
  const std::size_t at = rest_.rfind(" in ");
  const std::size_t dots = rest_.rfind("..");
  if (dots == rest_.npos || at == rest_.npos || at > dots) return std::nullopt;
  const auto low = parse_number<double>(trimmed(rest_.substr(at + 4, dots - at - 4)));
  const auto high = parse_number<double>(trimmed(rest_.substr(dots + 2)));
  check(low && high, "a range");
  rest_ = trimmed(rest_.substr(0, at));
  return NumberRange{*low, *high};
}

void LineParser::check(bool holds, std::string_view wanted) const {
  TPSIM_CHECK(holds, fmt::format("table: '{}' lacks {}", line_, wanted));
}

Expression LineParser::operation(std::size_t rank) {
  using Symbols = std::vector<std::string_view>;
  static const std::array<Symbols, 5> kRanks = {
      {{"or"}, {"and"}, {"==", "!=", "<=", ">=", "<", ">", "in"}, {"+", "-"}, {"*", "/", "%"}}};
  if (rank == kRanks.size()) return primary();
  constexpr std::size_t kComparisons = 2;
  if (rank == kComparisons && take("not")) return call_of("not", {operation(rank)});
  Expression left = operation(rank + 1);
  while (true) {
    const auto symbol = std::find_if(kRanks[rank].begin(), kRanks[rank].end(),
                                     [&](std::string_view one) { return take(one); });
    if (symbol == kRanks[rank].end()) return left;
    left = call_of(std::string(*symbol), {std::move(left), operation(rank + 1)});
  }
}

Expression LineParser::primary() {
  if (take("(")) {
    Expression inside = expression();
    expect(")");
    return inside;
  }
  if (take("-")) return call_of("-", {Expression{}, primary()});
  if (rest_.starts_with('\'')) {
    const std::size_t end = rest_.find('\'', 1);
    check(end != rest_.npos, "a quote");
    Expression word{.kind = Expression::Kind::kWord, .text = std::string(rest_.substr(1, end - 1))};
    rest_ = trimmed(rest_.substr(end + 1));
    return word;
  }
  if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) {
    const LeadingNumber found = leading_number(rest_).value();
    rest_ = trimmed(rest_.substr(found.length));
    return {.number = found.value};
  }
  std::size_t length = 0;
  const auto is_dash = [&] {  // of a name such as "seq-length"
    return length > 0 && length + 1 < rest_.size() && rest_[length] == '-' &&
           is_of_name(rest_[length + 1]);
  };
  while (length < rest_.size() && (is_of_name(rest_[length]) || is_dash())) ++length;
  std::string name(rest_.substr(0, length));
  check(!name.empty(), "an expression");
  rest_ = trimmed(rest_.substr(name.size()));
  if (name == "true") return {.number = 1};
  if (name == "false") return {};
  if (!take("(")) return {.kind = Expression::Kind::kName, .text = std::move(name)};
  std::vector<Expression> arguments;
  do arguments.push_back(expression());
  while (take(","));
  expect(")");
  return call_of(std::move(name), std::move(arguments));
}

Expression parse_expression(std::string_view text) { return LineParser(text).expression(); }

Statement parse_statement(std::string_view text) {
  LineParser line(text);
  Statement one{.verb = line.word()};
  const std::string& verb = one.verb;
  if (verb == "if" || verb == "each" || verb == "repeat" || verb == "in") {
    if (verb == "in") {
      one.name = line.word(":");
    } else {
      one.expressions.emplace_back("", line.expression());
    }
    line.expect(":");
    one.inner.push_back(parse_statement(line.rest()));
  } else if (verb == "like") {
    one.name = line.word();
    one.expressions = line.assignments();
  } else if (verb == "spread") {
  } else if (verb == "shape" || verb == "clear" || verb == "take") {
    one.words = words_in(line.text());
    one.name = one.words.back();
  } else if (verb == "skip") {
    one.words = words_in(line.text());
  } else if (verb == "rotary") {
    one.expressions.emplace_back("", line.expression());
  } else if (verb == "activation") {
    one.name = line.word();
    one.words = words_in(line.text());
  } else if (verb == "only") {
    one.name = line.word();
    one.words = alternatives(line.word());
    if (line.take(":")) one.text = line.text();
  } else if (verb == "refuse" || verb == "note" || verb == "ask") {
    if (verb == "refuse") one.name = line.word(":");
    if (verb == "refuse" && !line.rest().starts_with(':')) {
      one.expressions.emplace_back("", line.expression());
    }
    line.expect(":");
    one.text = line.text();
  } else if (verb == "op" || verb == "layer_op" || verb == "part_op" || verb == "part") {
    one.name = line.word();
    while (!line.is_done() && !line.take(":")) one.words.push_back(line.word());
    one.expressions = line.assignments();
  } else {
    one.name = std::exchange(one.verb, line.take("<-") ? "<-" : "=");
    if (one.verb == "<-") {
      parse_read(line, one);
    } else {
      line.expect("=");
      one.expressions.emplace_back("", line.expression());
    }
  }
  return one;
}

std::string text_of(const TableValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return number_text(std::get<double>(value));
}

double Evaluator::number(const Expression& expression) {
  return std::get<double>(value(expression));
}

std::string Evaluator::filled(std::string_view text) {
  return with_values(text, [&](const Expression& one) { return this->text(one); });
}

TableValue Evaluator::value(const Expression& expression) {
  const std::string& text = expression.text;
  if (expression.kind == Expression::Kind::kNumber) return expression.number;
  if (expression.kind == Expression::Kind::kWord) return text;
  return expression.kind == Expression::Kind::kName ? named(text) : call(expression);
}

TableValue Evaluator::call(const Expression& one) {
  const std::string& name = one.text;
  const auto& of = one.arguments;
  if (name == "or") return number(of[0]) != 0 || number(of[1]) != 0 ? 1.0 : 0.0;
  if (name == "and") return number(of[0]) != 0 && number(of[1]) != 0 ? 1.0 : 0.0;
  if (name == "not") return number(of[0]) == 0 ? 1.0 : 0.0;
  if (name == "if") return value(of[number(of[0]) != 0 ? 1 : 2]);
  if (name == "==") return value(of[0]) == value(of[1]) ? 1.0 : 0.0;
  if (name == "!=") return value(of[0]) != value(of[1]) ? 1.0 : 0.0;
  if (name == "sqrt") return std::sqrt(number(of[0]));
  if (name == "log") return std::log(number(of[0]));
  if (name == "floor") return std::floor(number(of[0]));
  if (name == "ceil") return std::ceil(number(of[0]));
  if (name == "+") {
    const TableValue left = value(of[0]);
    if (std::holds_alternative<std::string>(left)) return text_of(left) + text(of[1]);
  }
  return arithmetic(name, number(of[0]), number(of[1]));
}

}  // namespace tpsim
