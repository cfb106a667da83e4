#include "core/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>

namespace tpsim {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Keeps one row of the distance table between all prefixes.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view text, const std::vector<std::string_view>& choices) {
  std::string best;
  // A choice that contains the text wins, the shortest first: "h100" means h100-sxm, not h200.
  constexpr std::size_t kLeastPart = 4;
  for (const std::string_view choice : choices) {
    const bool holds = text.size() >= kLeastPart && choice.find(text) != std::string_view::npos;
    if (holds && (best.empty() || choice.size() < best.size())) best = choice;
  }
  if (!best.empty()) return best;
  // Rejects choices that differ in half of the letters or more: they are not typos.
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 2);
  for (const std::string_view choice : choices) {
    const std::size_t distance = edit_distance(text, choice);
    if (distance < best_distance) {
      best_distance = distance;
      best = choice;
    }
  }
  return best;
}

Result<std::size_t> choose(std::string_view what, std::string_view text,
                           const std::vector<std::string_view>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  return bad_input(
      fmt::format("unknown {} '{}'", what, text), "",
      meant(nearest(text, choices), fmt::format("choose from {}", fmt::join(choices, ", "))));
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = lower(c);
  return text;
}

std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  if (!pattern.ends_with('*')) return text == pattern;
  return text.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool matches_any(std::string_view text, std::string_view patterns) {
  for (std::size_t begin = 0; begin < patterns.size();) {
    const std::size_t end = std::min(patterns.find(' ', begin), patterns.size());
    if (matches_pattern(text, patterns.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::string_view cut_off(std::string_view& text, std::string_view ends) {
  const std::string_view front = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(std::min(front.size() + 1, text.size()));
  return front;
}

std::string meant(const std::string& near, std::string otherwise) {
  return near.empty() ? std::move(otherwise) : fmt::format("did you mean {}?", near);
}

std::string plain(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace tpsim
