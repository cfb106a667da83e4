#include <algorithm>
#include <cctype>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/shell_words.h"

namespace tpsim {
namespace {

// Returns the name of the variable that the word consists of: "X" for "\"${X}\"". Empty for others.
std::string variable_in(std::string word) {
  const bool has_dollar = word.find('$') != std::string::npos;
  std::erase_if(word,
                [](char c) { return std::string_view("\"${}").find(c) != std::string_view::npos; });
  const bool is_name = std::all_of(
      word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return has_dollar && is_name ? word : "";
}

// Returns the expanded word. An unset variable is empty, as in a shell. It and a variable that the
// script leaves empty for the user are recorded as missing.
std::string value_of(const std::string& word, ShellVariables& variables) {
  std::string value = variables.expanded_text(word);
  const auto unset = unset_name(value);
  if (!unset) {
    const std::string name = value.empty() ? variable_in(word) : "";
    if (!name.empty()) variables.note_missing(name);
    return value;
  }
  if (unset->size() > 1) variables.note_missing(unset->substr(unset->find('$') + 1));
  variables.take_from_outside();
  return "";
}

std::optional<bool> compare(const std::string& left, const std::string& sign,
                            const std::string& right) {
  if (sign == "=" || sign == "==") {
    return sign == "==" ? matches_pattern(left, right) : left == right;
  }
  if (sign == "!=") return left != right;
  const auto a = parse_number<long long>(trimmed(left));
  const auto b = parse_number<long long>(trimmed(right));
  if (!a || !b) return std::nullopt;
  if (sign == "-eq") return *a == *b;
  if (sign == "-ne") return *a != *b;
  if (sign == "-lt" || sign == "<") return *a < *b;
  if (sign == "-le") return *a <= *b;
  if (sign == "-gt" || sign == ">") return *a > *b;
  if (sign == "-ge") return *a >= *b;
  return std::nullopt;
}

}  // namespace

std::optional<bool> shell_and(std::optional<bool> a, std::optional<bool> b) {
  if (a == false || b == false) return false;
  return a && b ? std::optional(true) : std::nullopt;
}

std::optional<bool> shell_or(std::optional<bool> a, std::optional<bool> b) {
  if (a == true || b == true) return true;
  return a && b ? std::optional(false) : std::nullopt;
}

std::optional<bool> shell_condition(const std::vector<std::string>& all,
                                    ShellVariables& variables) {
  std::vector<std::string> words;
  bool negated = false;
  const bool tests =
      !all.empty() && (all[0] == "[" || all[0] == "[[" || all[0] == "test" || all[0] == "!");
  if (!tests) {
    if (all.size() == 1 && (all[0] == "true" || all[0] == "false")) return all[0] == "true";
    return std::nullopt;
  }
  for (const std::string& word : all) {
    const bool bracket =
        word == "[" || word == "[[" || word == "]" || word == "]]" || word == "test";
    if (word == "!") negated = !negated;
    if (!bracket && word != "!") words.push_back(word);
  }
  const auto signed_result = [&](std::optional<bool> value) {
    return value ? std::optional(*value != negated) : std::nullopt;
  };
  for (const std::string_view joint : {"-o", "-a"}) {
    const auto at = std::find(words.begin(), words.end(), joint);
    if (at == words.end()) continue;
    std::vector<std::string> left(words.begin(), at);
    std::vector<std::string> right(at + 1, words.end());
    left.insert(left.begin(), "[");
    right.insert(right.begin(), "[");
    const auto a = shell_condition(left, variables);
    const auto b = shell_condition(right, variables);
    return signed_result(joint == "-a" ? shell_and(a, b) : shell_or(a, b));
  }
  if (words.size() == 1) return signed_result(!value_of(words[0], variables).empty());
  if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n")) {
    return signed_result(value_of(words[1], variables).empty() == (words[0] == "-z"));
  }
  if (words.size() != 3) return std::nullopt;
  return signed_result(
      compare(value_of(words[0], variables), words[1], value_of(words[2], variables)));
}

}  // namespace tpsim
