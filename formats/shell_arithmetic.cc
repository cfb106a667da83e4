// Evaluates arithmetic of bash, such as "$((TP * PP + 1))", with integers and variables that
// contain integers.
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/shell_words.h"

namespace tpsim {
namespace {

constexpr int kDeepestParentheses = 16;

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Parser of an expression of integers, names, + - * / % and parentheses.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellVariables& variables)
      : text_(text), variables_(variables) {}

  std::optional<long long> value() {
    const auto sum = read_sum(0);
    skip();
    return at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (std::isspace(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '$' || text_[at_] == '{' || text_[at_] == '}')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<long long> read_sum(int depth) {
    auto left = read_product(depth);
    while (left) {
      const bool plus = take('+');
      if (!plus && !take('-')) return left;
      const auto right = read_product(depth);
      if (!right) return std::nullopt;
      left = bounded(plus ? *left + *right : *left - *right);
    }
    return left;
  }
  std::optional<long long> read_product(int depth) {
    auto left = read_atom(depth);
    while (left) {
      const char sign = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : '\0';
      if (sign == '\0') return left;
      const auto right = read_atom(depth);
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      long long product = 0;
      if (sign == '*' && __builtin_mul_overflow(*left, *right, &product)) return std::nullopt;
      left = bounded(sign == '*' ? product : sign == '/' ? *left / *right : *left % *right);
    }
    return left;
  }
  std::optional<long long> read_atom(int depth) {
    if (depth > kDeepestParentheses) return std::nullopt;
    if (take('(')) {
      const auto inside = read_sum(depth + 1);
      return take(')') ? inside : std::nullopt;
    }
    if (take('-')) {
      const auto value = read_atom(depth + 1);
      return value ? std::optional(-*value) : std::nullopt;
    }
    skip();
    std::string name;
    while (at_ < text_.size() && is_name_letter(text_[at_])) name += text_[at_++];
    if (name.empty()) return std::nullopt;
    if (const auto number = parse_number<long long>(name)) return bounded(*number);
    const std::vector<std::string>* values = variables_.find(name);
    if (values == nullptr || values->empty()) return std::nullopt;
    const auto number = parse_number<long long>(trimmed(values->front()));
    return number ? bounded(*number) : std::nullopt;
  }
  // Returns nothing for values beyond 2^61, so that the sum of two values fits into 64 bits.
  static std::optional<long long> bounded(long long value) {
    constexpr long long kMost = 1LL << 61;
    if (value > kMost || value < -kMost) return std::nullopt;
    return value;
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<long long> ShellVariables::arithmetic(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {  // mark its variables as used
    std::string name;
    while (i < text.size() && is_name_letter(text[i])) name += text[i++];
    if (const auto found = entries_.find(name); found != entries_.end()) found->second.used = true;
    if (name.empty()) ++i;
  }
  return Arithmetic(text, *this).value();
}

}  // namespace tpsim
