// Overflow-checked products of integers that come from files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

namespace tpsim {

// Returns the product of non-negative factors, or nullopt if the product overflows 64 bits. If a
// factor is 0, the product is 0 whatever the other factors are.
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
