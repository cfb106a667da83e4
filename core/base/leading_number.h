// Parses a number at the start of a text, or a whole text as a number, independent of the locale.
//
// leading_number.cc uses the standard library. leading_number_web.cc replaces it for browsers,
// whose standard library cannot parse floating-point numbers yet (cmake/Web.cmake).
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tpsim {

// The number at the start of a text, spelled as in C++ without a plus sign, and its length in
// characters. "inf" and "nan" are numbers too. Nullopt if the text does not start with a number or
// a double cannot hold the number.
struct LeadingNumber {
  double value = 0;
  std::size_t length = 0;
};
std::optional<LeadingNumber> leading_number(std::string_view text);

// Parses the whole text. Nullopt if the text holds anything else or T cannot hold the number.
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
