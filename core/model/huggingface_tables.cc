#include "core/model/huggingface_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {

extern const std::span<const unsigned char> kFamilyTables;  // huggingface_*.txt

namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// Reads words, names and expressions from the start of a line.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : rest_(trimmed(line)), line_(line) {}

  bool is_done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool take(std::string_view symbol) {
    if (!rest_.starts_with(symbol)) return false;
    const bool is_word = is_of_name(symbol.back());
    if (is_word && rest_.size() > symbol.size() && is_of_name(rest_[symbol.size()])) return false;
    rest_ = trimmed(rest_.substr(symbol.size()));
    return true;
  }
  void expect(std::string_view symbol) { check(take(symbol), symbol); }

  // Returns the characters up to a space, a colon at the end of a word, or one of `ends`.
  std::string word(std::string_view ends = "") {
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

  std::string text() { return std::string(std::exchange(rest_, {})); }

  // Reads "name = expression, ..." to the end of the line.
  std::vector<NamedExpression> assignments() {
    std::vector<NamedExpression> all;
    while (!is_done()) {
      std::string name = word("=");
      expect("=");
      all.emplace_back(std::move(name), expression());
      if (!is_done()) expect(",");
    }
    return all;
  }

  Expression expression() { return operation(0); }

  // Removes a range "in LOW..HIGH" at the end of the line.
  std::optional<NumberRange> range() {
    const std::size_t at = rest_.rfind(" in ");
    const std::size_t dots = rest_.rfind("..");
    if (dots == rest_.npos || at == rest_.npos || at > dots) return std::nullopt;
    const auto low = parse_number<double>(trimmed(rest_.substr(at + 4, dots - at - 4)));
    const auto high = parse_number<double>(trimmed(rest_.substr(dots + 2)));
    check(low && high, "a range");
    rest_ = trimmed(rest_.substr(0, at));
    return NumberRange{*low, *high};
  }

 private:
  void check(bool holds, std::string_view wanted) const {
    TPSIM_CHECK(holds, fmt::format("table of families: '{}' lacks {}", line_, wanted));
  }

  // Operators by rank; those of a higher rank bind more tightly.
  Expression operation(std::size_t rank) {
    using Symbols = std::vector<std::string_view>;
    static const std::array<Symbols, 5> kRanks = {
        {{"or"}, {"and"}, {"==", "!=", "<=", ">=", "<", ">", "in"}, {"+", "-"}, {"*", "/", "%"}}};
    if (rank == kRanks.size()) return primary();
    constexpr std::size_t kComparisons = 2;
    if (rank == kComparisons && take("not")) return call("not", {operation(rank)});
    Expression left = operation(rank + 1);
    while (true) {
      const auto symbol = std::find_if(kRanks[rank].begin(), kRanks[rank].end(),
                                       [&](std::string_view one) { return take(one); });
      if (symbol == kRanks[rank].end()) return left;
      left = call(std::string(*symbol), {std::move(left), operation(rank + 1)});
    }
  }

  static Expression call(std::string name, std::vector<Expression> arguments) {
    return {.kind = Expression::Kind::kCall,
            .text = std::move(name),
            .arguments = std::move(arguments)};
  }

  Expression primary() {
    if (take("(")) {
      Expression inside = expression();
      expect(")");
      return inside;
    }
    if (take("-")) return call("-", {Expression{}, primary()});
    if (rest_.starts_with('\'')) {
      const std::size_t end = rest_.find('\'', 1);
      check(end != rest_.npos, "a quote");
      Expression word{.kind = Expression::Kind::kWord,
                      .text = std::string(rest_.substr(1, end - 1))};
      rest_ = trimmed(rest_.substr(end + 1));
      return word;
    }
    if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) {
      const LeadingNumber found = leading_number(rest_).value();
      rest_ = trimmed(rest_.substr(found.length));
      return {.number = found.value};
    }
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_of_name);
    std::string name(rest_.begin(), end);
    check(!name.empty(), "an expression");
    rest_ = trimmed(rest_.substr(name.size()));
    if (name == "true") return {.number = 1};
    if (name == "false") return {};
    if (!take("(")) return {.kind = Expression::Kind::kName, .text = std::move(name)};
    std::vector<Expression> arguments;
    do arguments.push_back(expression());
    while (take(","));
    expect(")");
    return call(std::move(name), std::move(arguments));
  }

  std::string_view rest_, line_;
};

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
  } else if (verb == "refuse" || verb == "note") {
    if (verb == "refuse") one.name = line.word(":");
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

}  // namespace

Expression parse_expression(std::string_view text) { return LineParser(text).expression(); }

FamilyTables parse_family_tables() {
  FamilyTables tables;
  std::string_view text = as_text(kFamilyTables);
  std::vector<std::vector<Statement>*> open;  // where the next indented line belongs
  while (!text.empty()) {
    const std::string_view whole = cut_off(text, "\n");
    if (whole.empty() || whole.starts_with('#')) continue;
    if (whole.starts_with(' ')) {
      for (std::vector<Statement>* statements : open) statements->push_back(parse_statement(whole));
      continue;
    }
    LineParser line(whole);
    const std::string kind = line.word();
    open.clear();
    if (kind == "section") {
      TableSection& section = tables.sections[line.word()];
      section.parameters = line.assignments();
      open.push_back(&section.statements);
    } else if (kind == "family") {
      for (const std::string& name : words_in(line.text())) {
        open.push_back(&tables.families[name].statements);
      }
    } else if (kind == "encoder") {
      EncoderTable& encoder = tables.encoders.emplace_back();
      encoder.key = line.word();
      encoder.condition = line.expression();
      open.push_back(&encoder.statements);
    } else if (kind == "number" || kind == "flag") {
      const std::string_view rest = line.rest();
      const std::size_t equals = rest.find(" = ");
      tables.known_values.push_back({std::string(rest.substr(0, equals)), kind == "flag",
                                     parse_expression(rest.substr(equals + 3))});
    } else if (kind == "differs") {
      const std::string type = line.word(":");
      line.expect(":");
      tables.unplanned[type] = line.text();
    } else {
      std::string& list = kind == "shaping" ? tables.shaping_keys
                          : kind == "other" ? tables.other_keys
                                            : tables.shorter_families;
      list += ' ' + line.text();
    }
  }
  return tables;
}

}  // namespace tpsim
