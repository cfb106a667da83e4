// The names of an enumeration's values, defined once for files, options, tables and messages.
//
//   enum class Offload : std::uint8_t { kNone, kOptimizer };
//   template <>
//   inline constexpr auto kEnumNames<Offload> = std::to_array<std::string_view>({"none",
//   "optimizer"});
//
// Names are in the order of the enumerators, which count from 0. name_of() does not compile if a
// name is missing or superfluous.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tpsim {

// Splits a text at single spaces into kCount words. Saves a line per name in long enumerations.
template <std::size_t kCount>
consteval std::array<std::string_view, kCount> words(std::string_view text) {
  std::array<std::string_view, kCount> all;
  for (std::string_view& word : all) {
    if (text.empty()) throw "fewer words";  // in a constant expression: a compile error
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

// Whether `value` is one of the enumerators of E. Reads __PRETTY_FUNCTION__, in which compilers
// print an enumerator by name, and any other value as a cast or a number.
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

// All values of an enumeration that counts from 0, up to and including `last`.
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
