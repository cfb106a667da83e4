// op_case() for all ops except those of kernels/attention_ops.h: creates an op from its key.
#include "kernels/checks/op_cases.h"

#include "kernels/checks/op_operands.h"

namespace tpsim {
namespace {

constexpr DType kFloat = DType::kFloat32;
constexpr Label kLabel{ModelPart::kMeasurement, "case"};

constexpr float kLimit = 3;  // limit of clamped activations; some operands exceed it

MlpKind plain_kind(const OpKey& key) { return static_cast<MlpKind>(key.variant >> 1); }
MlpKind gated_kind(const OpKey& key) {
  return key.variant == 0 ? MlpKind::kSwiglu : static_cast<MlpKind>(key.variant);
}

Shape rows_by_cols(const OpKey& key) { return {key.dims[0], key.dims[1]}; }

Matrix operand_matrix(const Tensor& tensor, std::int64_t rows, std::int64_t cols, bool transposed) {
  if (transposed) std::swap(rows, cols);
  return {.tensor = tensor,
          .rows = rows,
          .cols = cols,
          .row_stride = cols,
          .outer_stride = rows * cols,
          .transposed = transposed};
}

NormForward norm_forward(Operands& make, const OpKey& key, NormKind kind) {
  const auto [rows, cols, x2, x3, x4, x5, x6, x7] = key.dims;
  const bool centred = kind == NormKind::kLayerNorm;
  return {.kind = kind,
          .x = make.normal(rows_by_cols(key), key.dtype, 2.0, 0.5),
          .gain = make.normal({cols}, key.dtype, 0.2, 1.0),
          .bias = centred ? make.normal({cols}, key.dtype) : Tensor(),
          .y = make.empty(rows_by_cols(key), key.dtype),
          .mean = centred ? make.empty({rows}, kFloat) : Tensor(),
          .rstd = make.empty({rows}, kFloat),
          .label = kLabel};
}

// Decodes the variant of a routing key.
RouterShape router_of(std::int64_t experts, std::uint8_t variant) {
  RouterShape router;
  router.score = static_cast<RouterScore>(variant & 3);
  router.renormalises = (variant & 4) != 0;
  router.scaling = (variant & 3) != 0 ? 2.5 : 1;
  if ((variant & 16) != 0 && experts % 4 == 0)
    router = {.score = router.score,
              .renormalises = router.renormalises,
              .scaling = 2.5,
              .groups = 4,
              .groups_kept = 2};
  return router;
}

RouteForward route_forward(Operands& make, std::int64_t tokens, std::int64_t experts,
                           std::int64_t capacity, std::int64_t per_token, std::uint8_t variant) {
  const Shape choices{tokens, per_token};
  return {.logits = make.normal({tokens, experts}, kFloat, 2.0),
          .weights = make.empty(choices, kFloat),
          .experts = make.empty(choices, DType::kInt32),
          .slots = make.empty(choices, DType::kInt32),
          .choices = make.empty({experts, capacity}, DType::kInt32),
          .router = router_of(experts, variant),
          .correction = (variant & 8) != 0 ? make.normal({experts}, kFloat, 0.1) : Tensor(),
          .label = kLabel};
}

// A routing, and shapes for permute, unpermute and the gradient of the weights.
struct Routed {
  RouteForward route;
  Tensor weights;  // undefined if the variant has none
  Shape in_tokens, in_slots;
};
Routed routed(Operands& make, const OpKey& key) {
  const auto [tokens, cols, experts, capacity, per_token, x5, x6, x7] = key.dims;
  const RouteForward route = route_forward(make, tokens, experts, capacity, per_token, 0);
  make.device().run(route);
  return {route,
          (key.variant & 1) != 0 ? route.weights : Tensor(),
          {tokens, cols},
          {experts, capacity, cols}};
}

}  // namespace

Matmul op_case(Operands& make, const OpKey& key, Of<Matmul>) {
  const auto [batch, m, n, k, x4, x5, x6, x7] = key.dims;
  const auto has = [&](MatmulVariant bit) { return (key.variant & bit) != 0; };
  const DType output = has(kOutputFloat32) ? kFloat : key.dtype;
  return Matmul{.a = operand_matrix(make.normal({batch, m, k}, key.dtype), m, k, has(kTransposeA)),
                .b = operand_matrix(make.normal({batch, k, n}, key.dtype), k, n, has(kTransposeB)),
                .c = operand_matrix(make.normal({batch, m, n}, output), m, n, false),
                .outer = batch,
                .beta = has(kAccumulate) ? 1.0F : 0.0F,
                .label = kLabel};
}

NormForward op_case(Operands& make, const OpKey& key, Of<NormForward>) {
  return norm_forward(make, key, static_cast<NormKind>(key.variant));
}

NormBackward op_case(Operands& make, const OpKey& key, Of<NormBackward>) {
  const auto kind = static_cast<NormKind>(key.variant & 1);
  const auto gradients = static_cast<DType>(key.variant % kOffsetNorm >> 2);
  NormForward f = norm_forward(make, key, kind);
  f.offset = (key.variant & kOffsetNorm) != 0 ? 1 : 0;
  make.device().run(f);
  const Shape shape = rows_by_cols(key);
  const bool with_residual = (key.variant & 2) != 0;
  return NormBackward{.kind = kind,
                      .dy = make.normal(shape, key.dtype),
                      .x = f.x,
                      .gain = f.gain,
                      .mean = f.mean,
                      .rstd = f.rstd,
                      .residual = with_residual ? make.normal(shape, key.dtype) : Tensor(),
                      .dx = make.empty(shape, key.dtype),
                      .dgain = make.normal({key.dims[1]}, gradients),
                      .dbias = f.bias.defined() ? make.normal({key.dims[1]}, gradients) : Tensor(),
                      .offset = f.offset,
                      .label = kLabel};
}

BiasGeluForward op_case(Operands& make, const OpKey& key, Of<BiasGeluForward>) {
  return BiasGeluForward{make.normal(rows_by_cols(key), key.dtype, 2.0),
                         (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
                         make.empty(rows_by_cols(key), key.dtype), plain_kind(key), kLabel};
}

BiasGeluBackward op_case(Operands& make, const OpKey& key, Of<BiasGeluBackward>) {
  const Shape shape = rows_by_cols(key);
  return BiasGeluBackward{make.normal(shape, key.dtype),
                          make.normal(shape, key.dtype, 2.0),
                          (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
                          make.empty(shape, key.dtype),
                          plain_kind(key),
                          kLabel};
}

SwigluForward op_case(Operands& make, const OpKey& key, Of<SwigluForward>) {
  return SwigluForward{make.normal({key.dims[0], 2 * key.dims[1]}, key.dtype, 2.0),
                       make.empty(rows_by_cols(key), key.dtype), gated_kind(key), kLimit, kLabel};
}

SwigluBackward op_case(Operands& make, const OpKey& key, Of<SwigluBackward>) {
  const Shape wide{key.dims[0], 2 * key.dims[1]};
  return SwigluBackward{make.normal(rows_by_cols(key), key.dtype),
                        make.normal(wide, key.dtype, 2.0),
                        make.empty(wide, key.dtype),
                        gated_kind(key),
                        kLimit,
                        kLabel};
}

BiasResidual op_case(Operands& make, const OpKey& key, Of<BiasResidual>) {
  const Shape shape = rows_by_cols(key);
  const Tensor x = make.normal(shape, key.dtype);
  const bool with_residual = (key.variant & 2) != 0;
  return BiasResidual{x, (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
                      with_residual ? make.normal(shape, key.dtype) : Tensor(),
                      with_residual ? make.empty(shape, key.dtype) : x, kLabel};
}

DropoutForward op_case(Operands& make, const OpKey& key, Of<DropoutForward>) {
  const Shape shape = rows_by_cols(key);
  return {.x = make.normal(shape, key.dtype),
          .bias = (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
          .residual = (key.variant & 2) != 0 ? make.normal(shape, key.dtype) : Tensor(),
          .y = make.empty(shape, key.dtype),
          .mask = make.empty(shape, DType::kUInt8),
          .rate = 0.1F,
          .seed = 9,
          .label = kLabel};
}

DropoutBackward op_case(Operands& make, const OpKey& key, Of<DropoutBackward>) {
  const DropoutForward f = op_case(make, key, Of<DropoutForward>());
  make.device().run(f);
  return DropoutBackward{f.x, f.mask, f.y, f.rate, kLabel};
}

ColumnSum op_case(Operands& make, const OpKey& key, Of<ColumnSum>) {
  return ColumnSum{make.normal(rows_by_cols(key), key.dtype),
                   make.normal({key.dims[1]}, static_cast<DType>(key.variant)), kLabel};
}

ColumnBias op_case(Operands& make, const OpKey& key, Of<ColumnBias>) {
  const Tensor x = make.normal(rows_by_cols(key), key.dtype);
  return {matrix_of(x), make.normal({key.dims[1]}, key.dtype), kLabel};
}

ColumnBiasGradient op_case(Operands& make, const OpKey& key, Of<ColumnBiasGradient>) {
  const Tensor dy = make.normal(rows_by_cols(key), key.dtype);
  return {matrix_of(dy), make.normal({key.dims[1]}, static_cast<DType>(key.variant)), kLabel};
}

EmbeddingForward op_case(Operands& make, const OpKey& key, Of<EmbeddingForward>) {
  const auto [tokens, hidden, vocab, x3, x4, x5, x6, x7] = key.dims;
  return EmbeddingForward{.tokens = make.integers({tokens}, vocab),
                          .table = make.normal({vocab, hidden}, key.dtype),
                          .y = make.empty({tokens, hidden}, key.dtype),
                          .label = kLabel};
}

EmbeddingBackward op_case(Operands& make, const OpKey& key, Of<EmbeddingBackward>) {
  const auto [tokens, hidden, vocab, x3, x4, x5, x6, x7] = key.dims;
  return EmbeddingBackward{.tokens = make.integers({tokens}, vocab),
                           .dy = make.normal({tokens, hidden}, key.dtype),
                           .dtable = make.normal({vocab, hidden}, static_cast<DType>(key.variant)),
                           .label = kLabel};
}

PositionForward op_case(Operands& make, const OpKey& key, Of<PositionForward>) {
  const auto [rows, cols, x2, x3, x4, x5, x6, x7] = key.dims;
  return PositionForward{make.normal({rows, 1, cols}, key.dtype),
                         make.normal({rows, cols}, key.dtype), kLabel};
}

PositionBackward op_case(Operands& make, const OpKey& key, Of<PositionBackward>) {
  const auto [rows, cols, x2, x3, x4, x5, x6, x7] = key.dims;
  return PositionBackward{make.normal({rows, 1, cols}, key.dtype),
                          make.normal({rows, cols}, static_cast<DType>(key.variant)), kLabel};
}

RouteForward op_case(Operands& make, const OpKey& key, Of<RouteForward>) {
  return route_forward(make, key.dims[0], key.dims[1], key.dims[2], key.dims[3], key.variant);
}

RouteBackward op_case(Operands& make, const OpKey& key, Of<RouteBackward>) {
  const auto [tokens, experts, per_token, x3, x4, x5, x6, x7] = key.dims;
  const RouteForward f = route_forward(make, tokens, experts, tokens, per_token, key.variant);
  make.device().run(f);
  return RouteBackward{f.logits,
                       f.weights,
                       f.experts,
                       make.normal({tokens, per_token}, kFloat),
                       make.empty({tokens, experts}, key.dtype),
                       f.router,
                       kLabel};
}

PermuteTokens op_case(Operands& make, const OpKey& key, Of<PermuteTokens>) {
  const Routed r = routed(make, key);
  const Tensor x = make.normal(r.in_tokens, key.dtype);
  return {x, r.weights, r.route.choices, make.empty(r.in_slots, key.dtype), key.dims[4], kLabel};
}

UnpermuteTokens op_case(Operands& make, const OpKey& key, Of<UnpermuteTokens>) {
  const Routed r = routed(make, key);
  const Tensor slots = make.normal(r.in_slots, key.dtype);
  return {slots, r.weights, r.route.slots, make.empty(r.in_tokens, key.dtype), kLabel};
}

RouteWeightGradient op_case(Operands& make, const OpKey& key, Of<RouteWeightGradient>) {
  const Routed r = routed(make, key);
  const Tensor slots = make.normal(r.in_slots, key.dtype);
  const Tensor dy = make.normal(r.in_tokens, key.dtype);
  return {dy, slots, r.route.slots, make.empty({key.dims[0], key.dims[4]}, kFloat), kLabel};
}

VocabMax op_case(Operands& make, const OpKey& key, Of<VocabMax>) {
  VocabMax op{make.normal(rows_by_cols(key), key.dtype, 3.0), make.empty({key.dims[0]}, kFloat),
              key.dims[1], kLabel};
  if (key.variant == 0) return op;
  op.labels = make.integers({key.dims[0]}, key.dims[1]);
  op.sums = make.empty({2, key.dims[0]}, kFloat);
  return op;
}

// About half of the labels are in this rank's vocabulary shard.
VocabRescale op_case(Operands& make, const OpKey& key, Of<VocabRescale>) {
  const Shape tokens{key.dims[0]};
  const Tensor own = make.normal(tokens, kFloat), max = make.positive(tokens, kFloat);
  make.device().run(Add{own, max, kLabel});
  return {.own = own,
          .max = max,
          .labels = make.integers(tokens, 100),
          .sums = make.positive({2, key.dims[0]}, kFloat),
          .columns = 50,
          .label = kLabel};
}

VocabSums op_case(Operands& make, const OpKey& key, Of<VocabSums>) {
  const VocabMax max = op_case(make, key, Of<VocabMax>());
  make.device().run(max);
  return {.logits = max.logits,
          .max = max.max,
          .labels = make.integers({key.dims[0]}, key.dims[1]),
          .sums = make.empty({2, key.dims[0]}, kFloat),
          .columns = key.dims[1],
          .label = kLabel};
}

CrossEntropyLoss op_case(Operands& make, const OpKey& key, Of<CrossEntropyLoss>) {
  return CrossEntropyLoss{make.positive({2, key.dims[0]}, kFloat),
                          make.empty({key.dims[0]}, kFloat), kLabel};
}

CrossEntropyBackward op_case(Operands& make, const OpKey& key, Of<CrossEntropyBackward>) {
  const VocabSums f = op_case(make, key, Of<VocabSums>());
  make.device().run(f);
  return CrossEntropyBackward{.logits = f.logits,
                              .max = f.max,
                              .sums = f.sums,
                              .labels = f.labels,
                              .columns = f.columns,
                              .scale = 0.125F,
                              .label = kLabel};
}

CopyMatrices op_case(Operands& make, const OpKey& key, Of<CopyMatrices>) {
  const auto [matrices, rows, cols, x3, x4, x5, x6, x7] = key.dims;
  const Tensor from = make.normal({matrices, rows, cols}, key.dtype);
  const Tensor to = make.normal({matrices, rows, cols}, key.dtype);
  return CopyMatrices{.from = operand_matrix(from, rows, cols, false),
                      .to = operand_matrix(to, rows, cols, false),
                      .outer = matrices,
                      .label = kLabel};
}

AdamW op_case(Operands& make, const OpKey& key, Of<AdamW>) {
  const Shape shape{key.dims[0]};
  const Tensor master = make.normal(shape, kFloat);
  return AdamW{.master = master,
               .momentum = make.normal(shape, kFloat, 0.1),
               .variance = make.positive(shape, kFloat),
               .gradient = make.normal(shape, static_cast<DType>(key.variant)),
               .weights = key.dtype == kFloat ? master : make.empty(shape, key.dtype),
               .rate = 1e-2F,
               .decay = 0.1F,
               .gradient_scale = 0.5F,
               .step = 3,
               .label = kLabel};
}

Axpby op_case(Operands& make, const OpKey& key, Of<Axpby>) {
  const bool reads_y = (key.variant & kReadsY) != 0;
  const auto dtype = static_cast<DType>(key.variant & (kReadsY - 1));
  const Shape shape{key.dims[0]};
  return {.x = make.normal(shape, key.dtype),
          .y = reads_y ? make.normal(shape, dtype) : make.empty(shape, dtype),
          .alpha = 0.7F,
          .beta = reads_y ? 0.9F : 0.0F,
          .squares = make.positive({1}, kFloat),
          .epsilon = 0.1F,
          .label = kLabel};
}

InitNormal op_case(Operands& make, const OpKey& key, Of<InitNormal>) {
  return InitNormal{.x = make.empty(rows_by_cols(key), key.dtype),
                    .seed = 7,
                    .tensor_id = 3,
                    .global_cols = key.dims[1],
                    .deviation = 0.02F,
                    .label = kLabel};
}

Add op_case(Operands& make, const OpKey& key, Of<Add>) {
  const Tensor x = make.normal({key.dims[0]}, key.dtype);
  return {x, make.normal({key.dims[0]}, static_cast<DType>(key.variant)), kLabel};
}

Scale op_case(Operands& make, const OpKey& key, Of<Scale>) {
  return {make.normal({key.dims[0]}, key.dtype), 0.3F, kLabel};
}

Fill op_case(Operands& make, const OpKey& key, Of<Fill>) {
  return {make.normal({key.dims[0]}, key.dtype), 0.3F, kLabel};
}

Copy op_case(Operands& make, const OpKey& key, Of<Copy>) {
  const Tensor x = make.normal({key.dims[0]}, key.dtype);
  return {x, make.empty({key.dims[0]}, key.dtype), kLabel};
}

Cast op_case(Operands& make, const OpKey& key, Of<Cast>) {
  const Tensor x = make.normal({key.dims[0]}, key.dtype);
  return {x, make.empty({key.dims[0]}, static_cast<DType>(key.variant)), kLabel};
}

SumSquares op_case(Operands& make, const OpKey& key, Of<SumSquares>) {
  const Tensor x = make.normal({key.dims[0]}, key.dtype);
  return {x, make.positive({1}, kFloat), kLabel};
}

Op make_op(Device& device, const OpKey& key, std::uint64_t seed) {
  Operands operands(device, seed);
#define TPSIM_MAKE_OP(AnyOp) \
  if (key.kind == kKindOf<AnyOp>) return op_case(operands, key, Of<AnyOp>());
  TPSIM_FOR_EACH_OP(TPSIM_MAKE_OP)
#undef TPSIM_MAKE_OP
  TPSIM_CHECK(false, "a kind of op that has operands");
}

}  // namespace tpsim
