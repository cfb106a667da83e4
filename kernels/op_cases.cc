// One function per kind of op, from its key to its operands.
#include "kernels/op_cases.h"

#include "kernels/op_cases_attention.h"
#include "kernels/op_operands.h"

namespace tpsim {
namespace {

constexpr DType kFloat = DType::kFloat32;
constexpr Label kLabel{ModelPart::kMeasurement, "case"};

constexpr float kLimit = 3;  // of clamped activations: some of the operands lie beyond it

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

Op matmul(Operands& make, const OpKey& key) {
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

Op norm_backward(Operands& make, const OpKey& key) {
  const auto kind = static_cast<NormKind>(key.variant & 1);
  const auto gradients = static_cast<DType>(key.variant >> 2);
  const NormForward f = norm_forward(make, key, kind);
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
                      .label = kLabel};
}

Op bias_gelu_forward(Operands& make, const OpKey& key) {
  return BiasGeluForward{make.normal(rows_by_cols(key), key.dtype, 2.0),
                         (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
                         make.empty(rows_by_cols(key), key.dtype), plain_kind(key), kLabel};
}

Op bias_gelu_backward(Operands& make, const OpKey& key) {
  const Shape shape = rows_by_cols(key);
  return BiasGeluBackward{make.normal(shape, key.dtype),
                          make.normal(shape, key.dtype, 2.0),
                          (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
                          make.empty(shape, key.dtype),
                          plain_kind(key),
                          kLabel};
}

Op swiglu_forward(Operands& make, const OpKey& key) {
  return SwigluForward{make.normal({key.dims[0], 2 * key.dims[1]}, key.dtype, 2.0),
                       make.empty(rows_by_cols(key), key.dtype), gated_kind(key), kLimit, kLabel};
}

Op swiglu_backward(Operands& make, const OpKey& key) {
  const Shape wide{key.dims[0], 2 * key.dims[1]};
  return SwigluBackward{make.normal(rows_by_cols(key), key.dtype),
                        make.normal(wide, key.dtype, 2.0),
                        make.empty(wide, key.dtype),
                        gated_kind(key),
                        kLimit,
                        kLabel};
}

Op bias_residual(Operands& make, const OpKey& key) {
  const Shape shape = rows_by_cols(key);
  const Tensor x = make.normal(shape, key.dtype);
  const bool with_residual = (key.variant & 2) != 0;
  return BiasResidual{x, (key.variant & 1) != 0 ? make.normal({key.dims[1]}, key.dtype) : Tensor(),
                      with_residual ? make.normal(shape, key.dtype) : Tensor(),
                      with_residual ? make.empty(shape, key.dtype) : x, kLabel};
}

DropoutForward dropout_forward(Operands& make, const OpKey& key) {
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

Op dropout_backward(Operands& make, const OpKey& key) {
  const DropoutForward f = dropout_forward(make, key);
  make.device().run(f);
  return DropoutBackward{f.x, f.mask, f.y, f.rate, kLabel};
}

Op column_sum(Operands& make, const OpKey& key) {
  return ColumnSum{make.normal(rows_by_cols(key), key.dtype),
                   make.normal({key.dims[1]}, static_cast<DType>(key.variant)), kLabel};
}

Op embedding_forward(Operands& make, const OpKey& key) {
  const auto [tokens, hidden, vocab, x3, x4, x5, x6, x7] = key.dims;
  return EmbeddingForward{.tokens = make.integers({tokens}, vocab),
                          .table = make.normal({vocab, hidden}, key.dtype),
                          .y = make.empty({tokens, hidden}, key.dtype),
                          .label = kLabel};
}

Op embedding_backward(Operands& make, const OpKey& key) {
  const auto [tokens, hidden, vocab, x3, x4, x5, x6, x7] = key.dims;
  return EmbeddingBackward{.tokens = make.integers({tokens}, vocab),
                           .dy = make.normal({tokens, hidden}, key.dtype),
                           .dtable = make.normal({vocab, hidden}, static_cast<DType>(key.variant)),
                           .label = kLabel};
}

Op position_forward(Operands& make, const OpKey& key) {
  const auto [rows, cols, x2, x3, x4, x5, x6, x7] = key.dims;
  return PositionForward{make.normal({rows, 1, cols}, key.dtype),
                         make.normal({rows, cols}, key.dtype), kLabel};
}

Op position_backward(Operands& make, const OpKey& key) {
  const auto [rows, cols, x2, x3, x4, x5, x6, x7] = key.dims;
  return PositionBackward{make.normal({rows, 1, cols}, key.dtype),
                          make.normal({rows, cols}, static_cast<DType>(key.variant)), kLabel};
}

// As the variant of a routing key says.
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

Op route_backward(Operands& make, const OpKey& key) {
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

// Dispatch, combine and the weights' gradient, after a routing.
Op slots_op(Operands& make, const OpKey& key) {
  const auto [tokens, cols, experts, capacity, per_token, x5, x6, x7] = key.dims;
  const RouteForward route = route_forward(make, tokens, experts, capacity, per_token, 0);
  make.device().run(route);
  const Tensor weights = (key.variant & 1) != 0 ? route.weights : Tensor();
  const Shape in_tokens{tokens, cols}, in_slots{experts, capacity, cols};
  if (key.kind == OpKind::kDispatchTokens) {
    return DispatchTokens{make.normal(in_tokens, key.dtype), weights,   route.choices,
                          make.empty(in_slots, key.dtype),   per_token, kLabel};
  }
  const Tensor slots = make.normal(in_slots, key.dtype);
  if (key.kind == OpKind::kCombineTokens) {
    return CombineTokens{slots, weights, route.slots, make.empty(in_tokens, key.dtype), kLabel};
  }
  return RouteWeightGradient{make.normal(in_tokens, key.dtype), slots, route.slots,
                             make.empty({tokens, per_token}, kFloat), kLabel};
}

VocabMax vocab_max(Operands& make, const OpKey& key) {
  VocabMax op{make.normal(rows_by_cols(key), key.dtype, 3.0), make.empty({key.dims[0]}, kFloat),
              key.dims[1], kLabel};
  if (key.variant == 0) return op;
  op.labels = make.integers({key.dims[0]}, key.dims[1]);
  op.sums = make.empty({2, key.dims[0]}, kFloat);
  return op;
}

// Of half the labels, which lie in this shard.
VocabRescale vocab_rescale(Operands& make, const OpKey& key) {
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

VocabSums vocab_sums(Operands& make, const OpKey& key) {
  const VocabMax max = vocab_max(make, key);
  make.device().run(max);
  return {.logits = max.logits,
          .max = max.max,
          .labels = make.integers({key.dims[0]}, key.dims[1]),
          .sums = make.empty({2, key.dims[0]}, kFloat),
          .columns = key.dims[1],
          .label = kLabel};
}

Op cross_entropy_loss(Operands& make, const OpKey& key) {
  return CrossEntropyLoss{make.positive({2, key.dims[0]}, kFloat),
                          make.empty({key.dims[0]}, kFloat), kLabel};
}

Op cross_entropy_backward(Operands& make, const OpKey& key) {
  const VocabSums f = vocab_sums(make, key);
  make.device().run(f);
  return CrossEntropyBackward{.logits = f.logits,
                              .max = f.max,
                              .sums = f.sums,
                              .labels = f.labels,
                              .columns = f.columns,
                              .scale = 0.125F,
                              .label = kLabel};
}

Op copy_matrices(Operands& make, const OpKey& key) {
  const auto [matrices, rows, cols, x3, x4, x5, x6, x7] = key.dims;
  const Tensor from = make.normal({matrices, rows, cols}, key.dtype);
  const Tensor to = make.normal({matrices, rows, cols}, key.dtype);
  return CopyMatrices{.from = operand_matrix(from, rows, cols, false),
                      .to = operand_matrix(to, rows, cols, false),
                      .outer = matrices,
                      .label = kLabel};
}

Op adamw(Operands& make, const OpKey& key) {
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

Op init_normal(Operands& make, const OpKey& key) {
  return InitNormal{.x = make.empty(rows_by_cols(key), key.dtype),
                    .seed = 7,
                    .tensor_id = 3,
                    .global_cols = key.dims[1],
                    .deviation = 0.02F,
                    .label = kLabel};
}

Op make(Operands& make, const OpKey& key) {
  const Shape flat{key.dims[0]};
  const auto other = static_cast<DType>(key.variant);
  const auto x = [&] { return make.normal(flat, key.dtype); };
  switch (key.kind) {
    case OpKind::kSoftmaxForward:
    case OpKind::kSoftmaxBackward:
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
    case OpKind::kRotary:
    case OpKind::kHeadNormForward:
    case OpKind::kHeadNormBackward:
    case OpKind::kSoftCapForward:
    case OpKind::kSoftCapBackward:
    case OpKind::kPositionScale:
    case OpKind::kHeadSum: return make_attention_op(make, key);
    case OpKind::kMatmul: return matmul(make, key);
    case OpKind::kNormForward: return norm_forward(make, key, static_cast<NormKind>(key.variant));
    case OpKind::kNormBackward: return norm_backward(make, key);
    case OpKind::kBiasGeluForward: return bias_gelu_forward(make, key);
    case OpKind::kBiasGeluBackward: return bias_gelu_backward(make, key);
    case OpKind::kSwigluForward: return swiglu_forward(make, key);
    case OpKind::kSwigluBackward: return swiglu_backward(make, key);
    case OpKind::kBiasResidual: return bias_residual(make, key);
    case OpKind::kDropoutForward: return dropout_forward(make, key);
    case OpKind::kDropoutBackward: return dropout_backward(make, key);
    case OpKind::kColumnSum: return column_sum(make, key);
    case OpKind::kColumnBias:
      return ColumnBias{matrix_of(make.normal(rows_by_cols(key), key.dtype)),
                        make.normal({key.dims[1]}, key.dtype), kLabel};
    case OpKind::kColumnBiasGradient:
      return ColumnBiasGradient{matrix_of(make.normal(rows_by_cols(key), key.dtype)),
                                make.normal({key.dims[1]}, other), kLabel};
    case OpKind::kEmbeddingForward: return embedding_forward(make, key);
    case OpKind::kEmbeddingBackward: return embedding_backward(make, key);
    case OpKind::kPositionForward: return position_forward(make, key);
    case OpKind::kPositionBackward: return position_backward(make, key);
    case OpKind::kRouteForward:
      return route_forward(make, key.dims[0], key.dims[1], key.dims[2], key.dims[3], key.variant);
    case OpKind::kRouteBackward: return route_backward(make, key);
    case OpKind::kDispatchTokens:
    case OpKind::kCombineTokens:
    case OpKind::kRouteWeightGradient: return slots_op(make, key);
    case OpKind::kVocabMax: return vocab_max(make, key);
    case OpKind::kVocabSums: return vocab_sums(make, key);
    case OpKind::kVocabRescale: return vocab_rescale(make, key);
    case OpKind::kCrossEntropyLoss: return cross_entropy_loss(make, key);
    case OpKind::kCrossEntropyBackward: return cross_entropy_backward(make, key);
    case OpKind::kCopyMatrices: return copy_matrices(make, key);
    case OpKind::kAdamW: return adamw(make, key);
    case OpKind::kInitNormal: return init_normal(make, key);
    case OpKind::kAdd: return Add{x(), make.normal(flat, other), kLabel};
    case OpKind::kScale: return Scale{x(), 0.3F, kLabel};
    case OpKind::kFill: return Fill{x(), 0.3F, kLabel};
    case OpKind::kCopy: return Copy{x(), make.empty(flat, key.dtype), kLabel};
    case OpKind::kCast: return Cast{x(), make.empty(flat, other), kLabel};
    case OpKind::kSumSquares: return SumSquares{x(), make.positive({1}, kFloat), kLabel};
    case OpKind::kConvolutionForward:
    case OpKind::kConvolutionBackward:
    case OpKind::kScanForward:
    case OpKind::kScanBackward:
    case OpKind::kGateForward:
    case OpKind::kGateBackward: break;  // known by their records alone
  }
  TPSIM_CHECK(false, "a kind of op");
}

}  // namespace

Op make_op(Device& device, const OpKey& key, std::uint64_t seed) {
  Operands operands(device, seed);
  return make(operands, key);
}

}  // namespace tpsim
