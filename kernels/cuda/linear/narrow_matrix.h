// An 8-bit matrix in cuBLASLt's layout, and a quantized operand that is kept for the next GEMM.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace tpsim {

struct NarrowMatrix {
  std::uint8_t* data = nullptr;      // [rows, depth], padded with zeros; null: not needed
  std::int64_t rows = 0, depth = 0;  // depth: a multiple of kNarrowMultiple
  // Scales of the elements:
  //   kTensor     one number
  //   kVector128  [ceil(depth / 128), rows], one for 128 elements of a row
  //   kTile128    [ceil(rows / 128), ceil(depth / 128) rounded up to a multiple of 4]
  //   kVector32   one-byte exponents of powers of two, one for 32 elements of a row, in tiles of
  //               128 rows x 4 scales, row blocks first; in a tile [rows % 32][rows / 32 % 4][4];
  //               zero beyond the matrix
  void* scales = nullptr;
};

// The transposed copy of an operand that was quantized in both orientations
// (OperandRounding::keeps_a), kept until the next GEMM reads it.
struct KeptOperand {
  const void* data = nullptr;  // address of the quantized matrix
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
