// Reading a number off the front of a text, in no locale's spelling.
//
// leading_number.cc asks the standard library; leading_number_web.cc stands in its place where that
// library reads no floating-point numbers yet (cmake/Web.cmake).
#pragma once

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

}  // namespace tpsim
