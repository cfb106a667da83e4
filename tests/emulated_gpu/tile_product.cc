#include "tests/emulated_gpu/tile_product.h"

namespace tpsim::emulated {

// All sums are accumulated together for vectorization; the order within each sum is kept.
Tile<8> tile_product(const Tile<16>& left, const Tile<8>& right) {
  Tile<8> sums{};
  for (std::size_t k = 0; k < left.size(); ++k) {
    for (std::size_t row = 0; row < sums.size(); ++row) {
      for (std::size_t column = 0; column < right[k].size(); ++column) {
        sums[row][column] += left[k][row] * right[k][column];
      }
    }
  }
  return sums;
}

}  // namespace tpsim::emulated
