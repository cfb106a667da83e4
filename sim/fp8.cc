#include "sim/fp8.h"

#include <string_view>

namespace tpsim {
namespace {

constexpr double kCastBytes = 2 + 2 * 1;
// 8-bit floats go by the name of the other 8-bit type: they are priced, never stored.
constexpr DType kFloat8 = DType::kUInt8;

bool starts_with(std::string_view label, std::string_view prefix) {
  return label.substr(0, prefix.size()) == prefix;
}

}  // namespace

bool is_linear_layer(const OpRecord& op) {
  if (op.key.kind != OpKind::kMatmul) return false;
  for (const std::string_view other : {"attention.scores", "attention.values", "head."}) {
    if (starts_with(op.label, other)) return false;
  }
  return true;
}

OpRecord in_fp8(const OpRecord& product) {
  OpRecord narrow = product;
  narrow.key.dtype = kFloat8;
  constexpr unsigned kLayout = kTransposeA | kTransposeB;
  narrow.key.variant = static_cast<std::uint8_t>((product.key.variant & ~kLayout) | kTransposeB);
  return narrow;
}

std::optional<OpRecord> cast_before(const OpRecord& product) {
  if ((product.key.variant & kTransposeA) != 0) return std::nullopt;
  const OpDims& dims = product.key.dims;  // batch, m, n, k
  const std::int64_t elements = dims[0] * dims[1] * dims[3];
  OpRecord cast;
  cast.key = {OpKind::kCast, DType::kBFloat16, static_cast<std::uint8_t>(kFloat8), {elements}};
  cast.bytes = kCastBytes * static_cast<double>(elements);
  cast.label = product.label;
  return cast;
}

}  // namespace tpsim
