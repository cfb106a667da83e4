// Choosing among names, with the nearest one offered when the text is none of them; words for
// shells.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// Levenshtein distance, case-insensitive.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The choice nearest to `text`; empty when nothing is near enough to be what was meant.
std::string nearest(std::string_view text, const std::vector<std::string_view>& choices);
template <class Texts>
std::string nearest(std::string_view text, const Texts& choices) {
  return nearest(text, std::vector<std::string_view>(std::begin(choices), std::end(choices)));
}

// Index of `text` among the choices, or an error "unknown <what> '<text>'" that names the nearest
// choice, or all of them when none is near.
Result<std::size_t> choose(std::string_view what, std::string_view text,
                           const std::vector<std::string_view>& choices);
template <class Texts>
Result<std::size_t> choose(std::string_view what, std::string_view text, const Texts& choices) {
  return choose(what, text, std::vector<std::string_view>(std::begin(choices), std::end(choices)));
}

// What `text_of`, a function or a member, gives of each value: texts that outlive the call.
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

// "a, b, c": what `text_of` makes of the values, with `between` them.
template <class Values, class Text>
std::string joined_text(const Values& values, std::string_view between, Text text_of) {
  std::string text;
  for (const auto& value : values) {
    if (!text.empty()) text += between;
    text += text_of(value);
  }
  return text;
}

// Of ASCII alone.
std::string in_lower_case(std::string text);
std::string in_capitals(std::string text);

// "adam_*" matches what begins so; without a star only the same text matches.
bool matches_pattern(std::string_view text, std::string_view pattern);
// Whether one of several patterns, with a space between each two of them, does.
bool matches_any(std::string_view text, std::string_view patterns);

// Words between blanks.
std::vector<std::string> words_in(const std::string& text);

// FNV-1a, begun or gone on with: the same on every machine, and no secret.
inline constexpr std::uint64_t kFnvStart = 14695981039346656037ULL;
std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnvStart);

// Takes off the front of a text, and returns, what stands before the first of these characters; the
// character goes too.
std::string_view cut_off(std::string_view& text, std::string_view ends);

// A hint: "did you mean tp?", or `otherwise` where nearest() found nothing.
std::string meant(const std::string& near, std::string otherwise = "");

// Without spaces, tabs and a carriage return around it.
std::string_view trimmed(std::string_view text);

// A word as a shell reads it back: quoted when it has to be.
std::string shell_quoted(std::string_view word);

}  // namespace tpsim
