#include "evidence/runs/framework_name.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "core/base/text.h"

namespace tpsim {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Removes "zero-3", "zero 3", "zero3" or "zero stage 3" from the text and returns the stage.
std::optional<int> take_zero(std::string& text) {
  constexpr std::string_view kWord = "zero";
  for (std::size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at + 1)) {
    std::size_t end = at + kWord.size();
    const auto skip = [&] {
      while (end < text.size() && (text[end] == ' ' || text[end] == '-' || text[end] == '_')) ++end;
    };
    skip();
    constexpr std::string_view kStage = "stage";
    if (text.compare(end, kStage.size(), kStage) == 0) end += kStage.size();
    skip();
    const bool is_stage = end < text.size() && text[end] >= '0' && text[end] <= '3' &&
                          (end + 1 == text.size() || !is_digit(text[end + 1]));
    if (!is_stage) continue;
    const int stage = text[end] - '0';
    text.erase(at, end + 1 - at);
    return stage;
  }
  return std::nullopt;
}

// Returns the version at the end of a word, such as "0.14.2", "v0.6.0" or "core_v0.6.0"; empty if
// there is none. A version consists of digits and at least one dot.
std::string version_in(std::string_view word) {
  const std::size_t first = word.find_first_of("0123456789");
  if (first == std::string_view::npos) return "";
  const std::string_view number = word.substr(first);
  const bool is_number =
      std::all_of(number.begin(), number.end(), [](char c) { return is_digit(c) || c == '.'; }) &&
      number.find('.') != std::string_view::npos;
  const std::string_view before = word.substr(0, first);
  const bool is_marked = before.empty() || before.ends_with('v') || before.ends_with('-') ||
                         before.ends_with('_') || before.ends_with('=');
  return is_number && is_marked ? std::string(number) : "";
}

}  // namespace

FrameworkName split_framework(const std::string& text) {
  FrameworkName framework;
  std::string left = in_lower_case(text);
  framework.zero = take_zero(left);
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    // Remove a commit: "flagscale.git@26cd664".
    if (const std::size_t at = word.find('@'); at != std::string::npos) word.erase(at);
    const std::string version = version_in(word);
    if (!version.empty()) {
      if (framework.version.empty()) framework.version = version;
      word.erase(word.size() - version.size());
      if (word.ends_with('v')) word.pop_back();
      while (!word.empty() && (word.back() == '-' || word.back() == '_' || word.back() == '=')) {
        word.pop_back();
      }
    }
    if (!word.empty()) words.push_back(word);
    word.clear();
  };
  for (const char c : left) {
    const bool ends = c == ' ' || c == ',' || c == '(' || c == ')' || c == ';' || c == '+';
    if (ends) {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  framework.name = joined_text(words, " ", [](const std::string& one) { return one; });
  return framework;
}

}  // namespace tpsim
