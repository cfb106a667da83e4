// The ops of the reference model, as structs of operands and scalars.
//
// describe() checks an op's shapes (a mismatch is a bug) and returns its record with FLOPs and
// least memory traffic. A device executes an Op by visiting it. If a device lacks an op, linking
// fails with the op's name. T is the number of tokens (sequence x batch, sequence-major: row =
// position * batch + sample), H is hidden. "+=" means that a result is added to its tensor.
// Statistics, losses and optimizer state are fp32; gradients are fp32 if the plan requires it.
#pragma once

#include <limits>
#include <variant>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/program/program.h"
#include "kernels/attention_ops.h"
#include "kernels/tensor.h"

namespace tpsim {

// A row-major matrix inside a tensor, or outer x inner such matrices. The elements of a row are
// adjacent; rows may be strided.
struct Matrix {
  Tensor tensor;
  std::int64_t rows = 0;  // rows and cols: as stored, before the transposition
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;  // elements between rows; negative: backwards from offset
  std::int64_t offset = 0;
  std::int64_t outer_stride = 0;  // between batches
  std::int64_t inner_stride = 0;
  bool transposed = false;  // the op uses the transpose
};
// The whole tensor as one matrix of rows() x cols().
Matrix matrix_of(const Tensor& tensor, bool transposed = false);

// Smallest scale of 8-bit operands (2^-126, the smallest normal number). The inverse of a smaller
// scale may be infinite, and then turns zeros into NaN.
inline constexpr float kLeastUnit = std::numeric_limits<float>::min();

// Stride in floats between the scales of operands in one array. cuBLASLt 12.9 and later require
// scales aligned to 16 bytes.
inline constexpr std::int64_t kScaleStride = 4;

// Quantization of a GEMM's operands. Sums stay fp32.
struct OperandRounding {
  Precision recipe = Precision::kNone;
  bool a_is_gradient = false;
  bool b_is_weight = false;
  // For Precision::kFp8: scale and amax of an operand, [2] fp32, aligned to 16 bytes. The GEMM
  // raises amax to the maximum of its operand.
  Tensor a_scale = {}, b_scale = {};
  // Whether scales are computed from the operands themselves, because earlier steps left none.
  bool finds_scales = false;
  // keeps_a: the next GEMM reads the same matrix a transposed, so a device may quantize both
  // orientations in this GEMM. takes_kept_a: this is that next GEMM.
  bool keeps_a = false, takes_kept_a = false;
};

// c = alpha op(a) op(b) + beta c, for every batch. a and b share a dtype; c may be fp32.
struct Matmul {
  Matrix a, b, c;
  std::int64_t outer = 1;  // batches: outer x inner
  std::int64_t inner = 1;
  float alpha = 1.0F;
  float beta = 0.0F;
  OperandRounding rounding = {};  // see Device::refusal_reason
  Label label;
};

// LayerNorm (with bias and mean) or RMSNorm (without) over the last extent.
struct NormForward {
  NormKind kind{};
  Tensor x, gain, bias;  // [T,H], [H], [H]
  Tensor y, mean, rstd;  // [T,H], [T] fp32, [T] fp32
  float epsilon = 1e-5F;
  float offset = 0;  // added to the gain
  Label label;
};
// dx = gradient through the norm, plus `residual` if defined (the gradient that bypassed the norm).
struct NormBackward {
  NormKind kind{};
  Tensor dy, x, gain, mean, rstd, residual;
  Tensor dx, dgain, dbias;  // dgain +=, dbias +=; undefined if frozen
  float offset = 0;         // added to the gain
  Label label;
};

// In place: x + bias, where x is a range of adjacent columns.
struct ColumnBias {
  Matrix x;
  Tensor bias;  // [cols]
  Label label;
};
// sums [cols] += column sums of dy.
struct ColumnBiasGradient {
  Matrix dy;
  Tensor sums;
  Label label;
};

// y = activation(x + bias), for MLP kinds without a gate. bias [cols] may be undefined.
struct BiasGeluForward {
  Tensor x, bias, y;
  MlpKind kind = MlpKind::kGelu;
  Label label;
};
struct BiasGeluBackward {
  Tensor dy, x, bias, dx;
  MlpKind kind = MlpKind::kGelu;
  Label label;
};
// MLP kinds with a gate: a row of x is [gate | up], y = activation(gate) * up. Only kClampedSwiglu
// uses `limit`.
struct SwigluForward {
  Tensor x, y;  // [T, 2F], [T, F]
  MlpKind kind = MlpKind::kSwiglu;
  float limit = 0;
  Label label;
};
struct SwigluBackward {
  Tensor dy, x, dx;
  MlpKind kind = MlpKind::kSwiglu;
  float limit = 0;
  Label label;
};

// y = x + bias (per column) + residual. bias and residual may be undefined; y may be x.
struct BiasResidual {
  Tensor x, bias, residual, y;
  Label label;
};
// y = keep(x + bias) / (1 - rate) + residual; keep() zeroes an element with probability `rate`.
// bias and residual may be undefined; y may be x. mask [elements of x] uint8 becomes 1 for kept
// elements. dropout_keeps(seed, i) decides for element i.
struct DropoutForward {
  Tensor x, bias, residual, y, mask;
  float rate = 0.0F;
  std::uint64_t seed = 0;
  Label label;
};
// dx = mask * dy / (1 - rate); dx may be dy.
struct DropoutBackward {
  Tensor dy, mask, dx;
  float rate = 0.0F;
  Label label;
};
// splitmix64 of the seed and the element's index.
constexpr std::uint64_t dropout_bits(std::uint64_t seed, std::uint64_t element) {
  std::uint64_t z = seed + (element + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return (z ^ (z >> 31)) >> 11;
}
constexpr bool dropout_keeps(std::uint64_t seed, std::uint64_t element, float rate) {
  const auto bits = static_cast<double>(dropout_bits(seed, element));
  return bits >= static_cast<double>(rate) * 0x1.0p53;
}

// sums[cols] += column sums of x.
struct ColumnSum {
  Tensor x, sums;
  Label label;
};

// The masked lookup of VocabParallelEmbedding: y[t] = table[token - vocab_begin]; zero for tokens
// of other ranks.
struct EmbeddingForward {
  Tensor tokens, table, y;  // [T] int32, [V local, H], [T,H]
  std::int64_t vocab_begin = 0;
  Label label;
};
struct EmbeddingBackward {
  Tensor tokens, dy, dtable;  // dtable +=
  std::int64_t vocab_begin = 0;
  Label label;
};
// x[s,b] += table[s]; x [S,B,H], table [>= S, H].
struct PositionForward {
  Tensor x, table;
  Label label;
};
struct PositionBackward {
  Tensor dy, dtable;  // dtable +=
  Label label;
};

// A router: sends each of T tokens to K of E experts. An expert has C slots (its capacity). Choice
// t * K + j is token t's expert with the j-th highest score; ties go to the lower index. Tokens
// take the slots of an expert in order. Choices beyond the capacity are dropped.
//
// `router` defines the weights. RouterScore::kChosen: softmax over the K chosen logits. With K = 1
// this weight would be constant and have no gradient, so it is the chosen expert's softmax over all
// logits. The score of a group of experts is the sum of its two best scores (kSigmoid) or its best
// score. Experts are chosen by score plus `correction` [E] fp32, if defined.
struct RouteForward {
  Tensor logits;   // [T,E] fp32
  Tensor weights;  // [T,K] fp32
  Tensor experts;  // [T,K] int32
  Tensor slots;    // [T,K] int32: expert * C + slot of the expert; -1 if dropped
  Tensor choices;  // [E,C] int32: index of the choice in each slot; -1 if empty
  RouterShape router = {};
  Tensor correction = {};
  Label label;
};
struct RouteBackward {
  Tensor logits, weights, experts;  // of RouteForward
  Tensor dweights;                  // [T,K] fp32
  Tensor dlogits;                   // [T,E]
  RouterShape router = {};
  Label label;
};
// y[e,c] = weight of the choice in the slot (1 without weights) * x of its token; zero for empty
// slots.
struct PermuteTokens {
  Tensor x, weights, choices, y;  // [T,H], [T,K] fp32 or undefined, [E,C], [E,C,H]
  std::int64_t per_token = 1;     // K
  Label label;
};
// y[t] = sum over the token's slots of weight * x[slot]; the transpose of PermuteTokens.
struct UnpermuteTokens {
  Tensor x, weights, slots, y;  // [E,C,H], [T,K] fp32 or undefined, [T,K], [T,H]
  Label label;
};
// dweights[t,j] = dy[t] . x[slot of choice j]; zero for dropped choices.
struct RouteWeightGradient {
  Tensor dy, x, slots, dweights;  // [T,H], [E,C,H], [T,K], [T,K] fp32
  Label label;
};

// Megatron's vocab_parallel_cross_entropy in steps; Head runs the all-reduces between them. Only
// the first `columns` of the local logits [T, V local] are token ids, the rest is padding.
struct VocabMax {
  Tensor logits, max;  // max [T] fp32; -inf if all columns are padding
  std::int64_t columns = 0;
  Label label;
  // If defined, the same pass computes the sums of VocabSums relative to these maxima.
  Tensor labels = {}, sums = {};
  std::int64_t vocab_begin = 0;
};
// sums[0,t] = sum of exp(logit - max). sums[1,t] = the label's logit - max; 0 if another rank has
// the label.
struct VocabSums {
  Tensor logits, max, labels, sums;  // sums [2,T] fp32
  std::int64_t vocab_begin = 0;
  std::int64_t columns = 0;
  Label label;
};
// Converts sums computed with this rank's maxima `own` to the maxima `max` of all ranks.
struct VocabRescale {
  Tensor own, max, labels, sums;
  std::int64_t vocab_begin = 0;
  std::int64_t columns = 0;
  Label label;
};
// loss[t] = log(sums[0,t]) - sums[1,t].
struct CrossEntropyLoss {
  Tensor sums, loss;
  Label label;
};
// In place: logits become scale * (softmax - one-hot(label)), and zero in padding columns.
struct CrossEntropyBackward {
  Tensor logits, max, sums, labels;
  std::int64_t vocab_begin = 0;
  std::int64_t columns = 0;
  float scale = 1.0F;
  Label label;
};

// Ops on flat arrays.
struct Add {
  Tensor x, into;  // into += x; dtypes may differ
  Label label;
};
struct Scale {
  Tensor x;
  float factor = 1.0F;
  Label label;
};
struct Fill {
  Tensor x;
  float value = 0.0F;
  Label label;
};
struct Copy {
  Tensor from, to;  // equal dtypes
  Label label;
};
// Copies outer x inner matrices between two memory layouts. Neither is transposed, and they must
// not overlap.
struct CopyMatrices {
  Matrix from, to;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  Label label;
};
struct Cast {
  Tensor from, to;
  Label label;
};
struct SumSquares {
  Tensor x, sum;  // sum [1] fp32 +=
  Label label;
};
// AdamW: decoupled weight decay, bias-corrected moments (Loshchilov & Hutter 2019). m and v are
// updated with gradient_scale * gradient; master -= rate * (m^ / (sqrt(v^) + epsilon) + decay *
// master); weights = master rounded. In fp32 training `weights` may be the master.
struct AdamW {
  Tensor master, momentum, variance, gradient, weights;
  float rate = 0, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, decay = 0, gradient_scale = 1;
  std::int64_t step = 1;  // counts from 1
  Label label;
};
// y = alpha x + beta y. Dtypes may differ; y may be x. With `squares` [1] fp32, alpha is divided by
// max(sqrt(squares), epsilon). y is not read if beta is 0.
struct Axpby {
  Tensor x, y;
  float alpha = 1.0F, beta = 0.0F;
  Tensor squares = {};
  float epsilon = 0.0F;
  Label label;
};
// x = deviation * N(0,1), drawn by (seed, tensor_id, global index), so that every layout starts
// with equal weights. x is the block at [row_begin, col_begin] of a global matrix with global_cols
// columns.
struct InitNormal {
  Tensor x;
  std::uint64_t seed = 0, tensor_id = 0;
  std::int64_t row_begin = 0, col_begin = 0, global_cols = 1;
  float deviation = 1.0F;
  Label label;
};

// The list of ops. Declarations for every op are generated from it: TPSIM_FOR_EACH_OP(DO) expands
// to DO(Matmul) DO(NormForward) and so on.
// clang-format off
#define TPSIM_FOR_EACH_OP(DO) \
  DO(Matmul) DO(NormForward) DO(NormBackward) DO(SoftmaxForward) DO(SoftmaxBackward) \
  DO(FlashForward) DO(FlashBackward) DO(BiasGeluForward) DO(BiasGeluBackward) DO(SwigluForward) \
  DO(SwigluBackward) DO(BiasResidual) DO(DropoutForward) DO(DropoutBackward) DO(ColumnSum) \
  DO(Rotary) DO(HeadNormForward) DO(HeadNormBackward) DO(SoftCapForward) DO(SoftCapBackward) \
  DO(PositionScale) DO(HeadSum) DO(ColumnBias) DO(ColumnBiasGradient) DO(EmbeddingForward) DO(EmbeddingBackward) DO(PositionForward) DO(PositionBackward) \
  DO(RouteForward) DO(RouteBackward) DO(PermuteTokens) DO(UnpermuteTokens) DO(RouteWeightGradient) \
  DO(VocabMax) DO(VocabSums) DO(VocabRescale) DO(CrossEntropyLoss) DO(CrossEntropyBackward) DO(Add) DO(Scale) \
  DO(Fill) DO(Copy) DO(CopyMatrices) DO(Cast) DO(SumSquares) DO(AdamW) DO(Axpby) DO(InitNormal)
// clang-format on

// TPSIM_FOR_EACH_OP(TPSIM_COMMA_OP) expands to ", Matmul, NormForward ...". VariantAfter drops the
// `void` before the first comma.
#define TPSIM_COMMA_OP(AnyOp) , AnyOp
template <class Nothing, class... Ops>
using VariantAfter = std::variant<Ops...>;
using Op = VariantAfter<void TPSIM_FOR_EACH_OP(TPSIM_COMMA_OP)>;
#undef TPSIM_COMMA_OP

// kKindOf<Matmul> is OpKind::kMatmul, and so on.
template <class AnyOp>
inline constexpr OpKind kKindOf{};
#define TPSIM_KIND_OF_OP(AnyOp) \
  template <>                   \
  inline constexpr OpKind kKindOf<AnyOp> = OpKind::k##AnyOp;
TPSIM_FOR_EACH_OP(TPSIM_KIND_OF_OP)
#undef TPSIM_KIND_OF_OP
static_assert(std::variant_size_v<Op> == kOpKindCount, "an op for every kind");

OpRecord describe(const Op& op);

}  // namespace tpsim
