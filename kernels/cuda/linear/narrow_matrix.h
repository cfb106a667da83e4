// A matrix in 8 bits as cuBLASLt takes it, and one that is kept from a product to the next.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace tpsim {

struct NarrowMatrix {
  std::uint8_t* data = nullptr;      // [rows, depth], zeros beyond the matrix; none: not wanted
  std::int64_t rows = 0, depth = 0;  // depth: a multiple of kNarrowMultiple
  // What units of the elements stand for:
  //   kTensor     one number
  //   kVector128  of 128 elements of a row: [ceil(depth / 128), rows]
  //   kTile128    of 128 x 128: [ceil(rows / 128), ceil(depth / 128) to a multiple of 4]
  //   kVector32   of 32 elements of a row, the exponents of powers of two in a byte each: tiles of
  //               128 rows x 4 of them, those of the first 128 rows first; in a tile
  //               [rows % 32][rows / 32 % 4][4]; zeros beyond the matrix
  void* scales = nullptr;
};

// The turned matrix of an operand that was rounded both ways (OperandRounding::keeps_a), until the
// product that takes it.
struct KeptOperand {
  const void* data = nullptr;  // what was rounded
  std::int64_t rows = 0, cols = 0, row_stride = 0;
  NarrowMatrix turned;

  bool is_of(const Matrix& matrix) const {
    return data != nullptr && data == address_of(matrix) && rows == matrix.rows &&
           cols == matrix.cols && row_stride == matrix.row_stride;
  }
  static const void* address_of(const Matrix& m) {
    return static_cast<const std::byte*>(m.tensor.raw()) + m.offset * size_of(m.tensor.dtype());
  }
};

}  // namespace tpsim
