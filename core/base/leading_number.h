// Reading a number off the front of a text, or all of a text as a number, in no locale's spelling.
//
// leading_number.cc asks the standard library; leading_number_web.cc stands in its place where that
// library reads no floating-point numbers yet (cmake/Web.cmake).
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tpsim {

// The number that a text starts with, spelled as in C++ without a plus sign, and how many
// characters it takes; "inf" and "nan" are numbers too. Nothing when it starts with no number, or
// with one that no double holds.
struct LeadingNumber {
  double value = 0;
  std::size_t length = 0;
};
std::optional<LeadingNumber> leading_number(std::string_view text);

// Nothing when anything else stands in the text, or when T does not hold the number.
template <std::floating_point T>
std::optional<T> parse_number(std::string_view text) {
  const auto leading = leading_number(text);
  if (!leading || leading->length != text.size()) return std::nullopt;
  return static_cast<T>(leading->value);
}
template <std::integral T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace tpsim
