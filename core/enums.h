// Lists of enumerators.
#pragma once

#include <array>
#include <cstddef>

namespace tpsim {

// All enumerators of an enum that counts from 0, from the first to Last.
template <auto Last>
constexpr auto all_up_to() {
  std::array<decltype(Last), static_cast<std::size_t>(Last) + 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<decltype(Last)>(i);
  return all;
}

}  // namespace tpsim
