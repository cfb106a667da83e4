#include "tests/layers/header_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace tpsim {
namespace {

struct Token {
  std::string text;
  int line = 0;
};
using Tokens = std::span<const Token>;

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_word(const Token& token) {
  return is_word_character(token.text.front()) &&
         std::isdigit(static_cast<unsigned char>(token.text.front())) == 0;
}

template <std::size_t N>
bool is_one_of(const Token& token, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), token.text) != words.end();
}

// Skips comments and preprocessor lines; strings are single tokens without their contents.
class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : left_(text) {}

  std::vector<Token> tokens() {
    std::vector<Token> all;
    while (skip_blanks(), !left_.empty()) {
      const int line = line_;
      all.push_back({std::string(next()), line});
    }
    return all;
  }

 private:
  std::string_view take(std::size_t length) {
    const std::string_view taken = left_.substr(0, length);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    left_.remove_prefix(taken.size());
    return taken;
  }

  void take_past(std::string_view end) {
    const std::size_t found = left_.find(end);
    take(found == std::string_view::npos ? left_.size() : found + end.size());
  }

  // Skips a directive with its continuation lines.
  void take_directive() {
    std::size_t end = left_.find('\n');
    while (end != std::string_view::npos && left_[end - 1] == '\\') end = left_.find('\n', end + 1);
    take(end == std::string_view::npos ? left_.size() : end);
  }

  void skip_blanks() {
    while (!left_.empty()) {
      if (std::isspace(static_cast<unsigned char>(left_.front())) != 0) {
        take(1);
      } else if (left_.front() == '#') {
        take_directive();
      } else if (left_.starts_with("//")) {
        take_past("\n");
      } else if (left_.starts_with("/*")) {
        take_past("*/");
      } else {
        return;
      }
    }
  }

  std::string_view next() {
    if (left_.starts_with("R\"(")) return take_past(")\""), "\"\"";
    if (left_.front() == '"' || left_.front() == '\'') return take_quoted(), "\"\"";
    if (left_.starts_with("::")) return take(2);
    const auto end = std::find_if_not(left_.begin(), left_.end(), is_word_character);
    return take(std::max<std::size_t>(1, static_cast<std::size_t>(end - left_.begin())));
  }

  void take_quoted() {
    const char quote = left_.front();
    std::size_t end = 1;
    while (end < left_.size() && left_[end] != quote) end += left_[end] == '\\' ? 2 : 1;
    take(end + 1);
  }

  std::string_view left_;
  int line_ = 1;
};

// Returns the number of tokens in the bracket that begins `tokens`, including both brackets.
std::size_t bracket_length(Tokens tokens, std::string_view open, std::string_view close) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == open) ++depth;
    if (tokens[i].text == close && --depth == 0) return i + 1;
  }
  return tokens.size();
}

std::string joined(Tokens tokens) {
  std::string text;
  for (const Token& token : tokens) {
    const bool two_words =
        !text.empty() && is_word_character(text.back()) && is_word_character(token.text.front());
    text += (two_words ? " " : "") + token.text;
  }
  return text;
}

// "const Plan& plan = {}" becomes "const Plan&".
std::string parameter_type(Tokens parameter) {
  constexpr std::array<std::string_view, 4> kBeforeTypes = {"const", "unsigned", "long", "::"};
  const auto is_default = [](const Token& token) { return token.text == "="; };
  const auto end = std::find_if(parameter.begin(), parameter.end(), is_default);
  parameter = parameter.first(static_cast<std::size_t>(end - parameter.begin()));
  const bool is_named = parameter.size() > 1 && is_word(parameter.back()) &&
                        !is_one_of(parameter[parameter.size() - 2], kBeforeTypes);
  return joined(is_named ? parameter.first(parameter.size() - 1) : parameter);
}

// Parameter types of `tokens`, which exclude the enclosing parentheses.
std::string parameter_types(Tokens tokens) {
  constexpr std::array<std::string_view, 4> kOpen = {"(", "<", "{", "["};
  constexpr std::array<std::string_view, 4> kClose = {")", ">", "}", "]"};
  std::string types;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= tokens.size(); ++i) {
    const bool is_end = i == tokens.size() || (depth == 0 && tokens[i].text == ",");
    if (is_end) {
      if (i > begin)
        types += (begin > 0 ? ", " : "") + parameter_type(tokens.subspan(begin, i - begin));
      begin = i + 1;
    } else {
      depth += (is_one_of(tokens[i], kOpen) ? 1 : 0) - (is_one_of(tokens[i], kClose) ? 1 : 0);
    }
  }
  return types;
}

// Returns the name in "struct Axis final : Base"; empty for an unnamed type. A specialization keeps
// its arguments.
std::string type_name(Tokens tokens) {
  constexpr std::array<std::string_view, 4> kKinds = {"struct", "class", "union", "enum"};
  while (!tokens.empty() && is_one_of(tokens.front(), kKinds)) tokens = tokens.subspan(1);
  if (tokens.size() > 1 && tokens[1].text == "(") {  // alignas(16)
    tokens = tokens.subspan(1 + bracket_length(tokens.subspan(1), "(", ")"));
  }
  if (tokens.empty() || !is_word(tokens.front())) return "";
  const bool is_special = tokens.size() > 1 && tokens[1].text == "<";
  return joined(tokens.first(is_special ? 1 + bracket_length(tokens.subspan(1), "<", ">") : 1));
}

// "Result<Plan> single_plan(const Arguments&)" becomes "single_plan(const Arguments&)". Empty for
// anything but a free function: a variable, a member's definition, a macro.
std::string function_name(Tokens tokens) {
  constexpr std::array<std::string_view, 4> kWithArguments = {"alignas", "decltype",
                                                              "__attribute__", "__launch_bounds__"};
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i].text == "=" && tokens[i - 1].text != "operator") return "";
    if (tokens[i].text == "<" && tokens[i - 1].text != "operator") {
      i += bracket_length(tokens.subspan(i), "<", ">") - 1;
    } else if (tokens[i].text == "(") {
      const std::size_t length = bracket_length(tokens.subspan(i), "(", ")");
      if (is_one_of(tokens[i - 1], kWithArguments)) {
        i += length - 1;
        continue;
      }
      const auto is_operator = [](const Token& token) { return token.text == "operator"; };
      const auto head = tokens.first(i);
      const auto op = std::find_if(head.begin(), head.end(), is_operator);
      const auto name = op != head.end() ? static_cast<std::size_t>(op - head.begin()) : i - 1;
      if (name == 0 || !is_word(tokens[name]) || tokens[name - 1].text == "::") return "";
      return joined(tokens.subspan(name, i - name)) + "(" +
             parameter_types(tokens.subspan(i + 1, length - 2)) + ")";
    }
  }
  return "";
}

// Returns the name of a declaration at namespace level. `is_definition`: a body follows.
std::string declared_name(Tokens tokens, bool is_definition) {
  constexpr std::array<std::string_view, 4> kTypes = {"struct", "class", "union", "enum"};
  constexpr std::array<std::string_view, 4> kNameless = {"friend", "static_assert", "concept",
                                                         "typedef"};
  std::string parameters;  // of a template; they distinguish overloads
  while (!tokens.empty() && (tokens.front().text == "template" || tokens.front().text == "[")) {
    const bool is_template = tokens.front().text == "template";
    const Tokens rest = is_template ? tokens.subspan(1) : tokens;
    const std::size_t length =
        is_template ? bracket_length(rest, "<", ">") : bracket_length(rest, "[", "]");
    if (is_template) parameters += joined(rest.first(length)) + " ";
    tokens = rest.subspan(length);
  }
  if (tokens.size() < 2 || is_one_of(tokens.front(), kNameless)) return "";
  if (tokens.front().text == "using") {
    return tokens.size() > 2 && tokens[2].text == "=" ? tokens[1].text : "";
  }
  if (is_one_of(tokens.front(), kTypes) && is_definition) return type_name(tokens);
  const std::string function = function_name(tokens);
  return function.empty() ? "" : parameters + function;
}

class Walk {
 public:
  explicit Walk(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  std::vector<HeaderName> names() {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::string& text = tokens_[i].text;
      const Tokens statement = Tokens(tokens_).subspan(begin, i - begin);
      if (text == "(") {
        i += bracket_length(from(i), "(", ")") - 1;  // including the braces of defaults
        continue;
      }
      if (text != ";" && text != "{" && text != "}") continue;
      if (text == "{" && !opens_namespace(statement)) {
        add(statement, true);
        i += bracket_length(from(i), "{", "}") - 1;
      } else if (text == ";") {
        add(statement, false);
      } else if (text == "}" && !namespaces_.empty()) {
        namespaces_.pop_back();
      }
      begin = i + 1;
    }
    return std::move(names_);
  }

 private:
  Tokens from(std::size_t i) const { return Tokens(tokens_).subspan(i); }

  // Whether the statement is `namespace a::b` or `extern "C"`; enters it.
  bool opens_namespace(Tokens statement) {
    if (statement.empty()) return false;
    if (statement.front().text == "extern" && statement.size() == 2) {
      namespaces_.emplace_back();
      return true;
    }
    if (statement.front().text != "namespace") return false;
    namespaces_.push_back(statement.size() > 1 ? joined(statement.subspan(1)) + "::" : kUnnamed);
    return true;
  }

  void add(Tokens statement, bool is_definition) {
    if (std::find(namespaces_.begin(), namespaces_.end(), kUnnamed) != namespaces_.end()) return;
    const std::string name = declared_name(statement, is_definition);
    if (name.empty()) return;
    std::string whole;
    for (const std::string& outer : namespaces_) whole += outer;
    names_.push_back({whole + name, statement.front().line});
  }

  static constexpr const char* kUnnamed = "(unnamed)";
  std::vector<Token> tokens_;
  std::vector<std::string> namespaces_;
  std::vector<HeaderName> names_;
};

}  // namespace

std::vector<HeaderName> header_names(std::string_view text) {
  return Walk(Tokenizer(text).tokens()).names();
}

}  // namespace tpsim
