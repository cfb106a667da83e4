// The cuBLASLt algorithm selected for a GEMM, as one line of text in a profile.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/result.h"

namespace tpsim {

// Granularity of the scales of an 8-bit operand: the tensor, 128 elements along the summed
// dimension, 128 x 128 elements, or 32 elements. Values are those of cublasLtMatmulMatrixScale_t.
enum class ScalesOf : std::uint8_t { kTensor = 0, kVector32 = 2, kVector128 = 4, kTile128 = 5 };

// All properties on which cuBLASLt's choice may depend. Row-major c[m,n] = op(a) op(b). Strides
// between rows and between batches are in elements.
struct MatmulKey {
  DType dtype{};
  DType output{};
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulates = false;
  std::array<std::int64_t, 4> sizes{};  // batch, m, n, k
  std::array<std::int64_t, 3> row_strides{};
  std::array<std::int64_t, 3> batch_strides{};
  std::int64_t alignment = 256;      // of the least aligned operand, in bytes
  bool a_is_e5m2 = false;            // for 8-bit operands; E4M3 if false
  std::array<ScalesOf, 2> scales{};  // of 8-bit operands a and b
  int multiprocessors = 0;           // limit of SMs that the GEMM may occupy; 0: all
  friend auto operator<=>(const MatmulKey&, const MatmulKey&) = default;
};

// Returns the alignment of an address in bytes, at most 256.
inline std::int64_t alignment_of(const void* address) {
  const auto bits = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
  return std::min<std::int64_t>(bits & -bits, 256);
}

struct MatmulChoice {
  MatmulKey key;
  std::array<std::uint64_t, 8> algorithm{};  // opaque; valid for one version of cuBLASLt
  std::uint64_t workspace = 0;               // bytes that the algorithm needs
  friend bool operator==(const MatmulChoice&, const MatmulChoice&) = default;
};

std::string to_string(const MatmulKey& key);
std::string to_text(const MatmulChoice& choice);
// Parses the text of to_text(). kBadInput if the text has another format.
Result<MatmulChoice> parse_matmul_choice(std::string_view text);

}  // namespace tpsim
