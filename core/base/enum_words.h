// The words of an enumeration, once: files, options, tables and messages all call its values by
// them.
//
//   enum class Offload : std::uint8_t { kNone, kOptimizer };
//   template <>
//   inline constexpr auto kEnumNames<Offload> = std::to_array<std::string_view>({"none",
//   "optimizer"});
//
// Words stand in the order of their enumerators, which begin at 0. A missing word is a compile
// error where name_of() or all_of() is used.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tpsim {

// So many words of a text that has a space between each two: what fills a screen with one a line.
template <std::size_t kCount>
consteval std::array<std::string_view, kCount> words(std::string_view text) {
  std::array<std::string_view, kCount> all;
  for (std::string_view& word : all) {
    if (text.empty()) throw "fewer words";  // in a constant expression: does not compile
    word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() == text.size() ? text.size() : word.size() + 1);
  }
  if (!text.empty()) throw "more words";
  return all;
}

template <class E>
inline constexpr std::array<std::string_view, 0> kEnumNames{};

template <class E>
concept HasEnumNames = !kEnumNames<E>.empty();

// Whether `value` is one of the enumerators of E: compilers print those by name and other numbers
// as a cast.
template <class E, E value>
constexpr bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  std::size_t at = text.rfind('=') + 1;
  while (text[at] == ' ') ++at;
  return text[at] != '(' && text[at] != '-' && !(text[at] >= '0' && text[at] <= '9');
}

template <HasEnumNames E>
constexpr std::string_view name_of(E value) {
  constexpr auto& words = kEnumNames<E>;
  static_assert(!is_enumerator<E, static_cast<E>(words.size())>(), "an enumerator without a word");
  static_assert(is_enumerator<E, static_cast<E>(words.size() - 1)>(), "a word without enumerator");
  return words[static_cast<std::size_t>(value)];
}

// All values of an enumeration that counts from 0, from the first to `last`.
template <auto last>
constexpr auto all_up_to() {
  std::array<decltype(last), static_cast<std::size_t>(last) + 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<decltype(last)>(i);
  return all;
}
template <HasEnumNames E>
constexpr auto all_of() {
  return all_up_to<static_cast<E>(kEnumNames<E>.size() - 1)>();
}

}  // namespace tpsim
