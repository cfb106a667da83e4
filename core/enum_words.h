// The words of an enumeration, once: files, options, tables and messages all call its values by
// them.
//
//   enum class Offload : std::uint8_t { kNone, kOptimizer };
//   template <>
//   inline constexpr auto kWordsOf<Offload> = std::to_array<std::string_view>({"none",
//   "optimizer"});
//
// Words stand in the order of their enumerators, which begin at 0. A missing word is a compile
// error where name_of() or all_of() is used.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tpsim {

template <class E>
inline constexpr std::array<std::string_view, 0> kWordsOf{};

template <class E>
concept HasWords = !kWordsOf<E>.empty();

// Whether `value` is one of the enumerators of E: compilers print those by name and other numbers
// as a cast.
template <class E, E value>
constexpr bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  std::size_t at = text.rfind('=') + 1;
  while (text[at] == ' ') ++at;
  return text[at] != '(' && text[at] != '-' && !(text[at] >= '0' && text[at] <= '9');
}

template <HasWords E>
constexpr std::string_view name_of(E value) {
  constexpr auto& words = kWordsOf<E>;
  static_assert(!is_enumerator<E, static_cast<E>(words.size())>(), "an enumerator without a word");
  static_assert(is_enumerator<E, static_cast<E>(words.size() - 1)>(), "a word without enumerator");
  return words[static_cast<std::size_t>(value)];
}

// All values, in their order.
template <HasWords E>
constexpr auto all_of() {
  std::array<E, kWordsOf<E>.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<E>(i);
  return all;
}

}  // namespace tpsim
