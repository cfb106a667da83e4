#include "sim/fp8.h"

namespace tpsim {
namespace {

constexpr double kCastBytes = 2 + 2 * 1;

}  // namespace

bool is_linear_layer(const OpRecord& op) {
  const ModelPart part = op.label.part;
  const bool is_in_fp8 = part == ModelPart::kLinear || part == ModelPart::kExperts;
  return op.key.kind == OpKind::kMatmul && is_in_fp8;
}

OpRecord in_fp8(const OpRecord& product) {
  OpRecord narrow = product;
  narrow.key.dtype = DType::kFloat8;
  constexpr unsigned kLayout = kTransposeA | kTransposeB;
  narrow.key.variant = static_cast<std::uint8_t>((product.key.variant & ~kLayout) | kTransposeB);
  return narrow;
}

std::optional<OpRecord> cast_before(const OpRecord& product) {
  if ((product.key.variant & kTransposeA) != 0) return std::nullopt;
  const OpDims& dims = product.key.dims;  // batch, m, n, k
  const std::int64_t elements = dims[0] * dims[1] * dims[3];
  return OpRecord{.key = {OpKind::kCast,
                          DType::kBFloat16,
                          static_cast<std::uint8_t>(DType::kFloat8),
                          {elements}},
                  .bytes = kCastBytes * static_cast<double>(elements),
                  .label = product.label};
}

}  // namespace tpsim
