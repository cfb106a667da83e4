#include "core/base/leading_number.h"

namespace tpsim {

std::optional<LeadingNumber> leading_number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc()) return std::nullopt;
  return LeadingNumber{value, static_cast<std::size_t>(end - text.data())};
}

}  // namespace tpsim
