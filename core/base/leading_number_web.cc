// leading_number() for browsers: scans for valid characters, then calls strtod, which has only the
// C locale there.
#include <cmath>
#include <cstdlib>
#include <string>

#include "core/base/leading_number.h"

namespace tpsim {

std::optional<LeadingNumber> leading_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::string_view word = text.substr(at, 3);
  if (word == "inf" || word == "nan") {
    return LeadingNumber{std::strtod(std::string(text.substr(0, at + 3)).c_str(), nullptr), at + 3};
  }
  const auto skip_digits = [&] {
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - first;
  };
  std::size_t digits = skip_digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    digits += skip_digits();
  }
  if (digits == 0) return std::nullopt;
  const std::size_t mantissa_end = at;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (skip_digits() == 0) at = mantissa_end;
  }
  const double value = std::strtod(std::string(text.substr(0, at)).c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return LeadingNumber{value, at};
}

}  // namespace tpsim
