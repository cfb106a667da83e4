// Lookup of names with suggestions for typos, and small text helpers.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// Levenshtein distance, case-insensitive.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the choice nearest to `text`; empty if none is near enough to be a typo.
std::string nearest(std::string_view text, const std::vector<std::string_view>& choices);
template <class Texts>
std::string nearest(std::string_view text, const Texts& choices) {
  return nearest(text, std::vector<std::string_view>(std::begin(choices), std::end(choices)));
}

// Returns the index of `text` among the choices. Error "unknown <what> '<text>'" with the nearest
// choice, or with all choices if none is near.
Result<std::size_t> choose(std::string_view what, std::string_view text,
                           const std::vector<std::string_view>& choices);
template <class Texts>
Result<std::size_t> choose(std::string_view what, std::string_view text, const Texts& choices) {
  return choose(what, text, std::vector<std::string_view>(std::begin(choices), std::end(choices)));
}

// Applies `text_of`, a function or member, to each value. The texts must outlive the call.
template <class Values, class TextOf>
std::vector<std::string_view> texts_of(const Values& values, TextOf text_of) {
  std::vector<std::string_view> texts;
  for (const auto& value : values) {
    static_assert(!std::is_same_v<decltype(std::invoke(text_of, value)), std::string>,
                  "a view of a copy dangles");
    texts.push_back(std::invoke(text_of, value));
  }
  return texts;
}

// Joins text_of(value) of all values with `between`: "a, b, c".
template <class Values, class Text>
std::string joined_text(const Values& values, std::string_view between, Text text_of) {
  std::string text;
  for (const auto& value : values) {
    if (!text.empty()) text += between;
    text += text_of(value);
  }
  return text;
}

// ASCII only.
std::string in_lower_case(std::string text);
std::string in_capitals(std::string text);

// Whether `text` matches. A trailing star in `pattern` matches any ending: "adam_*". A pattern
// without a star must equal the text.
bool matches_pattern(std::string_view text, std::string_view pattern);
// Whether one of several patterns matches. Spaces separate the patterns.
bool matches_any(std::string_view text, std::string_view patterns);

// Returns the bytes of an embedded file as text.
inline std::string_view as_text(std::span<const unsigned char> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Splits at white space.
std::vector<std::string> words_in(const std::string& text);

// FNV-1a hash, continued from `hash`. The same on every machine; not for secrets.
inline constexpr std::uint64_t kFnvStart = 14695981039346656037ULL;
std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnvStart);

// Removes and returns the text before the first of the characters `ends`. That character is removed
// too.
std::string_view cut_off(std::string_view& text, std::string_view ends);

// Returns the hint "did you mean tp?", or `otherwise` if `near` is empty.
std::string meant(const std::string& near, std::string otherwise = "");

// Returns the text without spaces and tabs at its ends and carriage returns at its end.
std::string_view trimmed(std::string_view text);

// Returns a name with spaces instead of underscores.
std::string plain(std::string_view name);

// Quotes a word for a shell if necessary.
std::string shell_quoted(std::string_view word);

}  // namespace tpsim
