// Mapping of matrix elements to lanes, compared with the PTX definition: a GEMM of tiles computed
// lane by lane on the host equals the GEMM of the matrices.
#include "kernels/cuda/tiles/fragments.h"

#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace tpsim {
namespace {

constexpr int kLanes = 32;
constexpr int kColumns = 64;  // per row of a tile
constexpr int kChunks = kColumns / kChunk;

// A tile in "shared memory": integers, stored swizzled.
class Tile {
 public:
  explicit Tile(int rows, int seed) : elements_(static_cast<std::size_t>(rows * kColumns)) {
    for (int row = 0; row < rows; ++row) {
      for (int col = 0; col < kColumns; ++col) {
        elements_[place(row, col)] = (row * 31 + col * 17 + seed) % 23 - 11;
      }
    }
  }
  int at(int row, int col) const { return elements_[place(row, col)]; }
  // Element `i` of the 16-byte chunk with this index.
  int in_chunk(int index, int i) const {
    return elements_[static_cast<std::size_t>(index * kChunk + i)];
  }

 private:
  static std::size_t place(int row, int col) {
    return static_cast<std::size_t>(swizzled(row, col / kChunk, kChunks) * kChunk + col % kChunk);
  }
  std::vector<int> elements_;
};

using Registers = std::array<std::array<std::array<int, 2>, 4>, kLanes>;  // [lane][register][half]

// ldmatrix.x4: lanes 8m .. 8m+7 point to the rows of matrix m. Lane l receives elements (l / 4, 2
// (l % 4)) and the next of each matrix, or of its transpose.
Registers load_matrices(const Tile& tile, const std::array<int, kLanes>& chunk, bool transposed) {
  Registers r{};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int m = 0; m < 4; ++m) {
      for (int half = 0; half < 2; ++half) {
        const int row = transposed ? lane % 4 * 2 + half : lane / 4;
        const int col = transposed ? lane / 4 : lane % 4 * 2 + half;
        r[static_cast<std::size_t>(lane)][static_cast<std::size_t>(m)]
         [static_cast<std::size_t>(half)] =
             tile.in_chunk(chunk[static_cast<std::size_t>(8 * m + row)], col);
      }
    }
  }
  return r;
}

// The chunk to which each lane points; first_row and first_chunk locate the 16 x 16 matrix.
template <class Source>
std::array<int, kLanes> chunks_of(Source source, int first_row, int first_chunk) {
  std::array<int, kLanes> chunks{};
  for (int lane = 0; lane < kLanes; ++lane) {
    const TilePlace place = source(lane);
    chunks[static_cast<std::size_t>(lane)] =
        swizzled(first_row + place.row, first_chunk + place.chunk, kChunks);
  }
  return chunks;
}

// Element (row, k) of operand A and (k, column) of B in mma.m16n8k16's registers.
int a_element(const Registers& r, int row, int k) {
  const std::size_t lane = static_cast<std::size_t>(row % 8 * 4 + k % 8 / 2);
  return r[lane][static_cast<std::size_t>(row / 8 + k / 8 * 2)][static_cast<std::size_t>(k % 2)];
}
int b_element(const Registers& r, int first_register, int k, int column) {
  const std::size_t lane = static_cast<std::size_t>(column * 4 + k % 8 / 2);
  return r[lane][static_cast<std::size_t>(first_register + k / 8)][static_cast<std::size_t>(k % 2)];
}

// Checks every element of both 16 x 8 results; `expected(row, column)` for columns 0..15.
template <class Expected>
void check_product(const Registers& a, const Registers& b, Expected expected) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) {
        sum += a_element(a, row, k) * b_element(b, column / 8 * 2, k, column % 8);
      }
      CHECK(sum == expected(row, column));
    }
  }
}

}  // namespace

TEST_CASE("tiles multiply by columns: rows of one with rows of the other", "[fragments]") {
  const Tile a(32, 1), b(32, 5);
  for (const int first_chunk : {0, 2, 6}) {
    const Registers left = load_matrices(a, chunks_of(a_source, 16, first_chunk), false);
    const Registers right = load_matrices(b, chunks_of(b_source_by_column, 16, first_chunk), false);
    check_product(left, right, [&](int row, int column) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) {
        const int at = first_chunk * kChunk + k;
        sum += a.at(16 + row, at) * b.at(16 + column, at);
      }
      return sum;
    });
  }
}

TEST_CASE("tiles multiply by depth: columns of one with rows of the other", "[fragments]") {
  const Tile a(16, 2), b(32, 7);
  const Registers left = load_matrices(a, chunks_of(a_source, 0, 4), false);
  const Registers right = load_matrices(b, chunks_of(b_source_by_depth, 16, 2), true);
  check_product(left, right, [&](int row, int column) {
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum += a.at(row, 4 * kChunk + k) * b.at(16 + k, 16 + column);
    return sum;
  });
}

TEST_CASE("tiles multiply by depth on both sides: columns of one with columns of the other") {
  const Tile a(32, 3), b(32, 11);
  const Registers left = load_matrices(a, chunks_of(a_source_by_depth, 16, 4), true);
  const Registers right = load_matrices(b, chunks_of(b_source_by_depth, 16, 2), true);
  check_product(left, right, [&](int row, int column) {
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum += a.at(16 + k, 4 * kChunk + row) * b.at(16 + k, 16 + column);
    return sum;
  });
}

TEST_CASE("results of two adjacent GEMM tiles are the next GEMM's left operand") {
  // Accumulators 0 and 1 of a lane are adjacent in a row: the halves of one register.
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4, k = lane % 4 * 2;  // register 0 of operand A
    CHECK(result_row(lane, 0) == row);
    CHECK(result_col(lane, 0) == k);
    CHECK(result_col(lane, 1) == k + 1);
    CHECK(result_row(lane, 2) == row + 8);  // register 1
    CHECK(result_col(lane, 2) == k);
  }
}

TEST_CASE(
    "swizzling permutes a tile, spreads a column over all banks, and steps along k are an xor") {
  for (const int chunks : {8, 16}) {
    std::set<int> places;
    for (int row = 0; row < 32; ++row) {
      for (int chunk = 0; chunk < chunks; ++chunk) places.insert(swizzled(row, chunk, chunks));
    }
    CHECK(static_cast<int>(places.size()) == 32 * chunks);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::set<int> banks;  // 16-byte banks; a 128-byte line has 8
      for (int row = 8; row < 16; ++row) banks.insert(swizzled(row, chunk, chunks) % 8);
      CHECK(banks.size() == 8);
      for (int step = 0; step + chunk % 2 < chunks; step += 2) {
        const int here = swizzled(5, chunk % 2, chunks);
        CHECK(swizzled(5, chunk % 2 + step, chunks) == (here ^ step));
        CHECK(swizzled(5 + 16, chunk % 2 + step, chunks) == (here ^ step) + 16 * chunks);
      }
    }
  }
}

}  // namespace tpsim
