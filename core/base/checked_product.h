// Products of whole numbers that files give: counted, or found to be too large.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

namespace tpsim {

// The product of factors of at least 0; nothing where 64 bits do not hold it. One factor of 0 makes
// it 0, however large the others are.
inline std::optional<std::int64_t> checked_product(std::span<const std::int64_t> factors) {
  std::int64_t product = 1;
  bool overflows = false;
  for (const std::int64_t factor : factors) {
    if (factor == 0) return 0;
    overflows = overflows || product > std::numeric_limits<std::int64_t>::max() / factor;
    if (!overflows) product *= factor;
  }
  if (overflows) return std::nullopt;
  return product;
}
inline std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> factors) {
  return checked_product(std::span(factors.begin(), factors.size()));
}

}  // namespace tpsim
