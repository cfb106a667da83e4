// Which algorithm of cuBLASLt serves which matrix product: a line of text each, for a profile.
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

// What of an operand in 8 bits shares a scale: the tensor, 128 elements that are summed over, 128 x
// 128, or 32. The numbers are cuBLASLt's (cublasLtMatmulMatrixScale_t).
enum class ScalesOf : std::uint8_t { kTensor = 0, kVector32 = 2, kVector128 = 4, kTile128 = 5 };

// All that cuBLASLt's choice may depend on. Row-major c[m,n] = op(a) op(b); the strides are between
// rows and between batches, in elements.
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
  bool a_is_e5m2 = false;            // of 8 bits; they are E4M3 otherwise
  std::array<ScalesOf, 2> scales{};  // of a and b in 8 bits
  int multiprocessors = 0;           // that it may occupy; 0: all
  friend auto operator<=>(const MatmulKey&, const MatmulKey&) = default;
};

// What an address is a multiple of, 256 bytes at most.
inline std::int64_t alignment_of(const void* address) {
  const auto bits = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
  return std::min<std::int64_t>(bits & -bits, 256);
}

struct MatmulChoice {
  MatmulKey key;
  std::array<std::uint64_t, 8> algorithm{};  // opaque; of one version of cuBLASLt
  std::uint64_t workspace = 0;               // bytes it needs
  friend bool operator==(const MatmulChoice&, const MatmulChoice&) = default;
};

std::string to_string(const MatmulKey& key);
std::string to_text(const MatmulChoice& choice);
// kBadInput when the text is not what to_text() writes.
Result<MatmulChoice> parse_matmul_choice(std::string_view text);

}  // namespace tpsim
