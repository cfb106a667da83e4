#include "kernels/op_work.h"

#include <algorithm>

namespace tpsim {
namespace {

void require_fits(const Matrix& m, std::int64_t outer, std::int64_t inner, const Label& label) {
  std::int64_t first = m.offset, last = m.offset + m.cols;
  for (const auto& [count, stride] :
       {std::pair{outer, m.outer_stride}, {inner, m.inner_stride}, {m.rows, m.row_stride}}) {
    (stride < 0 ? first : last) += (count - 1) * stride;
  }
  require(m.rows >= 1 && m.cols >= 1 && first >= 0 && last <= m.tensor.elements(), label,
          "the matrix lies inside its tensor");
}

// OpKey::variant of an activation. Gated: 0 for SwiGLU, else the MlpKind. Not gated: bit 0 means
// that there is a bias, the other bits are the MlpKind.
std::uint8_t gated_variant(MlpKind kind) {
  return kind == MlpKind::kSwiglu ? 0 : static_cast<std::uint8_t>(kind);
}
std::uint8_t plain_variant(MlpKind kind, const Tensor& bias) {
  return static_cast<std::uint8_t>((bias.defined() ? 1 : 0) | static_cast<int>(kind) << 1);
}

std::uint8_t router_variant(const RouterShape& router, bool corrected) {
  return static_cast<std::uint8_t>(static_cast<int>(router.score) | (router.renormalises ? 4 : 0) |
                                   (corrected ? 8 : 0) | (router.groups > 1 ? 16 : 0));
}

// Work of PermuteTokens, UnpermuteTokens and RouteWeightGradient, which read or write expert slots
// [E,C,H] and tokens [T,H].
Work slots_work(const Tensor& tokens, const Tensor& slots, std::int64_t per_token, bool weighted,
                const Tensor& written, const Label& label) {
  const Shape& s = slots.shape();
  require(s.rank() == 3 && s[2] == tokens.cols(), label, "slots are [E,C,H]");
  const std::int64_t choices = tokens.rows() * per_token;
  const auto moved = static_cast<double>(std::min(choices, s[0] * s[1]) * s[2]);
  const auto width = static_cast<double>(size_of(tokens.dtype()));
  return work(tokens.dtype(), weighted ? 1 : 0, {tokens.rows(), s[2], s[0], s[1], per_token},
              (weighted ? 2 : 1) * moved, moved * width + bytes_of(written));
}

}  // namespace

Work work_of(const Matmul& op) {
  const std::int64_t m = op.a.transposed ? op.a.cols : op.a.rows;
  const std::int64_t k = op.a.transposed ? op.a.rows : op.a.cols;
  const std::int64_t n = op.b.transposed ? op.b.rows : op.b.cols;
  require(k == (op.b.transposed ? op.b.cols : op.b.rows), op.label, "inner extents agree");
  require(op.c.rows == m && op.c.cols == n && !op.c.transposed, op.label, "the product's shape");
  require(op.a.tensor.dtype() == op.b.tensor.dtype(), op.label, "factors share a dtype");
  for (const Matrix* x : {&op.a, &op.b, &op.c}) require_fits(*x, op.outer, op.inner, op.label);

  const DType dtype = op.a.tensor.dtype();
  const DType output = op.c.tensor.dtype();
  int variant = (op.a.transposed ? kTransposeA : 0) | (op.b.transposed ? kTransposeB : 0);
  if (op.beta != 0.0F) variant |= kAccumulate;
  if (output == DType::kFloat32 && dtype != DType::kFloat32) variant |= kOutputFloat32;
  const std::int64_t batch = op.outer * op.inner;
  const double output_passes = op.beta != 0.0F ? 2 : 1;
  const double bytes =
      static_cast<double>(batch) * (static_cast<double>((m + n) * k * size_of(dtype)) +
                                    output_passes * static_cast<double>(m * n * size_of(output)));
  return work(dtype, static_cast<std::uint8_t>(variant), {batch, m, n, k},
              2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                  static_cast<double>(k),
              bytes);
}

Work work_of(const NormForward& op) {
  require(op.x.shape() == op.y.shape() && op.gain.elements() == op.x.cols(), op.label, "shapes");
  require(op.rstd.elements() == op.x.rows(), op.label, "one statistic per row");
  return rowwise(op.x, static_cast<std::uint8_t>(op.kind), 8,
                 bytes_of(op.x, op.y, op.gain, op.bias, op.mean, op.rstd));
}

Work work_of(const NormBackward& op) {
  require(op.x.shape() == op.dy.shape() && op.x.shape() == op.dx.shape(), op.label, "shapes");
  const int variant = static_cast<int>(op.kind) | (op.residual.defined() ? 2 : 0) |
                      (dtype_variant(op.dgain) << 2) | (op.offset != 0 ? kOffsetNorm : 0);
  return rowwise(op.x, static_cast<std::uint8_t>(variant), 12,
                 bytes_of(op.dy, op.x, op.residual, op.dx, op.gain, op.dgain, op.dbias));
}

Work work_of(const ColumnBias& op) {
  require(op.bias.elements() == op.x.cols, op.label, "one bias per column");
  require_fits(op.x, 1, 1, op.label);
  const double elements = static_cast<double>(op.x.rows * op.x.cols);
  const DType dtype = op.x.tensor.dtype();
  return work(dtype, 0, {op.x.rows, op.x.cols}, elements,
              2 * elements * static_cast<double>(size_of(dtype)));
}

Work work_of(const ColumnBiasGradient& op) {
  require(op.sums.elements() == op.dy.cols, op.label, "one sum per column");
  require_fits(op.dy, 1, 1, op.label);
  const double elements = static_cast<double>(op.dy.rows * op.dy.cols);
  const DType dtype = op.dy.tensor.dtype();
  return work(dtype, dtype_variant(op.sums), {op.dy.rows, op.dy.cols}, elements,
              elements * static_cast<double>(size_of(dtype)));
}

Work work_of(const BiasGeluForward& op) {
  require(op.x.shape() == op.y.shape(), op.label, "shapes");
  return rowwise(op.x, plain_variant(op.kind, op.bias), 12, bytes_of(op.x, op.bias, op.y));
}

Work work_of(const BiasGeluBackward& op) {
  require(op.x.shape() == op.dy.shape() && op.x.shape() == op.dx.shape(), op.label, "shapes");
  return rowwise(op.x, plain_variant(op.kind, op.bias), 20, bytes_of(op.x, op.bias, op.dy, op.dx));
}

Work work_of(const SwigluForward& op) {
  require(op.x.cols() == 2 * op.y.cols() && op.x.rows() == op.y.rows(), op.label, "shapes");
  return rowwise(op.y, gated_variant(op.kind), 6, bytes_of(op.x, op.y));
}

Work work_of(const SwigluBackward& op) {
  require(op.x.shape() == op.dx.shape() && op.x.cols() == 2 * op.dy.cols(), op.label, "shapes");
  return rowwise(op.dy, gated_variant(op.kind), 12, bytes_of(op.x, op.dy, op.dx));
}

Work work_of(const BiasResidual& op) {
  require(op.x.elements() == op.y.elements(), op.label, "shapes");
  require(!op.residual.defined() || op.residual.elements() == op.x.elements(), op.label,
          "the residual has x's shape");
  require(!op.bias.defined() || op.bias.elements() == op.x.cols(), op.label, "one bias per column");
  const int variant = (op.bias.defined() ? 1 : 0) | (op.residual.defined() ? 2 : 0);
  return rowwise(op.x, static_cast<std::uint8_t>(variant), 2,
                 bytes_of(op.x, op.bias, op.residual, op.y));
}

Work work_of(const DropoutForward& op) {
  require(op.x.elements() == op.y.elements() && op.x.elements() == op.mask.elements(), op.label,
          "shapes");
  require(op.mask.dtype() == DType::kUInt8, op.label, "the mask is uint8");
  require(op.rate > 0 && op.rate < 1, op.label, "0 < rate < 1");
  const int variant = (op.bias.defined() ? 1 : 0) | (op.residual.defined() ? 2 : 0);
  return rowwise(op.x, static_cast<std::uint8_t>(variant), 10,
                 bytes_of(op.x, op.bias, op.residual, op.y, op.mask));
}

Work work_of(const DropoutBackward& op) {
  require(op.dy.elements() == op.dx.elements() && op.dy.elements() == op.mask.elements(), op.label,
          "shapes");
  return rowwise(op.dy, 0, 2, bytes_of(op.dy, op.dx, op.mask));
}

Work work_of(const ColumnSum& op) {
  require(op.sums.elements() == op.x.cols(), op.label, "one sum per column");
  return rowwise(op.x, dtype_variant(op.sums), 1, bytes_of(op.x, op.sums));
}

Work work_of(const EmbeddingForward& op) {
  require(op.tokens.elements() == op.y.rows() && op.table.cols() == op.y.cols(), op.label,
          "shapes");
  return work(op.y.dtype(), 0, {op.y.rows(), op.y.cols(), op.table.rows()}, 0, 2 * bytes_of(op.y));
}

Work work_of(const EmbeddingBackward& op) {
  require(op.tokens.elements() == op.dy.rows() && op.dtable.cols() == op.dy.cols(), op.label,
          "shapes");
  const double updated = static_cast<double>(op.dy.elements() * size_of(op.dtable.dtype()));
  return work(op.dy.dtype(), dtype_variant(op.dtable),
              {op.dy.rows(), op.dy.cols(), op.dtable.rows()}, static_cast<double>(op.dy.elements()),
              bytes_of(op.dy) + 2 * updated);
}

Work work_of(const PositionForward& op) {
  require(op.x.shape().rank() == 3 && op.table.cols() == op.x.cols(), op.label, "x is [S,B,H]");
  require(op.x.shape()[0] <= op.table.rows(), op.label, "the table reaches the last position");
  return rowwise(op.x, 0, 1, 3 * bytes_of(op.x));
}

Work work_of(const PositionBackward& op) {
  require(op.dy.shape().rank() == 3 && op.dtable.cols() == op.dy.cols(), op.label, "dy is [S,B,H]");
  return rowwise(op.dy, dtype_variant(op.dtable), 1, 2 * bytes_of(op.dy));
}

Work work_of(const RouteForward& op) {
  const Shape& logits = op.logits.shape();
  const std::int64_t tokens = op.logits.rows(), per_token = op.weights.cols();
  require(logits.cols() >= per_token && op.weights.rows() == tokens &&
              op.experts.elements() == op.weights.elements() &&
              op.slots.elements() == op.weights.elements(),
          op.label, "K choices of every token");
  require(op.choices.rows() == logits.cols(), op.label, "slots of every expert");
  require(op.logits.dtype() == DType::kFloat32, op.label, "logits are fp32");
  return work(op.logits.dtype(), router_variant(op.router, op.correction.defined()),
              {tokens, logits.cols(), op.choices.cols(), per_token},
              static_cast<double>((5 + per_token) * op.logits.elements()),
              bytes_of(op.logits, op.weights, op.experts, op.slots, op.choices));
}

Work work_of(const RouteBackward& op) {
  const std::int64_t tokens = op.logits.rows(), per_token = op.weights.cols();
  require(op.dlogits.elements() == op.logits.elements() &&
              op.dweights.elements() == op.weights.elements() &&
              op.experts.elements() == op.weights.elements(),
          op.label, "shapes");
  return work(op.dlogits.dtype(), router_variant(op.router, false),
              {tokens, op.logits.cols(), per_token}, 4 * static_cast<double>(op.logits.elements()),
              bytes_of(op.logits, op.weights, op.dweights, op.experts, op.dlogits));
}

Work work_of(const PermuteTokens& op) {
  const bool weighted = op.weights.defined();
  require(!weighted || op.weights.elements() == op.x.rows() * op.per_token, op.label,
          "a weight for every choice");
  require(op.choices.elements() * op.y.cols() == op.y.elements(), op.label, "a choice for a slot");
  return slots_work(op.x, op.y, op.per_token, weighted, op.y, op.label);
}

Work work_of(const UnpermuteTokens& op) {
  const bool weighted = op.weights.defined();
  require(!weighted || op.weights.elements() == op.slots.elements(), op.label,
          "a weight for every choice");
  require(op.slots.rows() == op.y.rows(), op.label, "slots of every token");
  return slots_work(op.y, op.x, op.slots.cols(), weighted, op.y, op.label);
}

Work work_of(const RouteWeightGradient& op) {
  require(op.slots.rows() == op.dy.rows() && op.dweights.elements() == op.slots.elements(),
          op.label, "shapes");
  return slots_work(op.dy, op.x, op.slots.cols(), true, op.dy, op.label);
}

Work work_of(const VocabMax& op) {
  require(op.max.elements() == op.logits.rows() && op.columns <= op.logits.cols(), op.label,
          "shapes");
  if (!op.sums.defined()) return rowwise(op.logits, 0, 1, bytes_of(op.logits, op.max));
  require(op.sums.elements() == 2 * op.logits.rows() && op.labels.elements() == op.logits.rows(),
          op.label, "shapes");
  return rowwise(op.logits, 1, 4, bytes_of(op.logits, op.max, op.sums));
}

Work work_of(const VocabSums& op) {
  require(op.sums.elements() == 2 * op.logits.rows() && op.labels.elements() == op.logits.rows(),
          op.label, "shapes");
  return rowwise(op.logits, 0, 3, bytes_of(op.logits, op.sums));
}

Work work_of(const VocabRescale& op) {
  require(op.sums.elements() == 2 * op.max.elements() && op.own.elements() == op.max.elements() &&
              op.labels.elements() == op.max.elements(),
          op.label, "shapes");
  return flat(op.max, 0, 3, bytes_of(op.own, op.max, op.labels, op.sums, op.sums));
}

Work work_of(const CrossEntropyLoss& op) {
  require(op.sums.elements() == 2 * op.loss.elements(), op.label, "shapes");
  return flat(op.loss, 0, 2, bytes_of(op.sums, op.loss));
}

Work work_of(const CrossEntropyBackward& op) {
  require(op.sums.elements() == 2 * op.logits.rows(), op.label, "shapes");
  return rowwise(op.logits, 0, 3, 2 * bytes_of(op.logits));
}

Work work_of(const Add& op) {
  require(op.x.elements() == op.into.elements(), op.label, "shapes");
  return flat(op.x, dtype_variant(op.into), 1, bytes_of(op.x, op.into, op.into));
}

Work work_of(const Scale& op) { return flat(op.x, 0, 1, 2 * bytes_of(op.x)); }

Work work_of(const Fill& op) { return flat(op.x, 0, 0, bytes_of(op.x)); }

Work work_of(const Copy& op) {
  require(op.from.elements() == op.to.elements() && op.from.dtype() == op.to.dtype(), op.label,
          "shapes and dtypes");
  return flat(op.from, 0, 0, bytes_of(op.from, op.to));
}

Work work_of(const CopyMatrices& op) {
  require(op.from.rows == op.to.rows && op.from.cols == op.to.cols, op.label, "shapes");
  require(!op.from.transposed && !op.to.transposed, op.label, "nothing is transposed");
  require(op.from.tensor.dtype() == op.to.tensor.dtype(), op.label, "dtypes");
  for (const Matrix* x : {&op.from, &op.to}) require_fits(*x, op.outer, op.inner, op.label);
  const std::int64_t matrices = op.outer * op.inner;
  const auto elements = static_cast<double>(matrices * op.from.rows * op.from.cols);
  const DType dtype = op.from.tensor.dtype();
  return work(dtype, 0, {matrices, op.from.rows, op.from.cols}, 0,
              2 * elements * static_cast<double>(size_of(dtype)));
}

Work work_of(const Cast& op) {
  require(op.from.elements() == op.to.elements(), op.label, "shapes");
  return flat(op.from, dtype_variant(op.to), 0, bytes_of(op.from, op.to));
}

Work work_of(const SumSquares& op) {
  require(op.sum.elements() == 1, op.label, "one sum");
  return flat(op.x, 0, 2, bytes_of(op.x));
}

Work work_of(const AdamW& op) {
  const std::int64_t n = op.master.elements();
  require(op.momentum.elements() == n && op.variance.elements() == n &&
              op.gradient.elements() == n && op.weights.elements() == n,
          op.label, "shapes");
  return flat(
      op.weights, dtype_variant(op.gradient), 16,
      2 * bytes_of(op.master, op.momentum, op.variance) + bytes_of(op.gradient, op.weights));
}

Work work_of(const Axpby& op) {
  require(op.x.elements() == op.y.elements(), op.label, "shapes");
  require(!op.squares.defined() || op.squares.elements() == 1, op.label, "one sum of squares");
  const bool reads_y = op.beta != 0.0F;
  const int variant = dtype_variant(op.y) | (reads_y ? kReadsY : 0);
  return flat(op.x, static_cast<std::uint8_t>(variant), reads_y ? 3 : 1,
              bytes_of(op.x, op.y) + (reads_y ? bytes_of(op.y) : 0));
}

Work work_of(const InitNormal& op) { return rowwise(op.x, 0, 20, bytes_of(op.x)); }

Matrix matrix_of(const Tensor& tensor, bool transposed) {
  return {.tensor = tensor,
          .rows = tensor.rows(),
          .cols = tensor.cols(),
          .row_stride = tensor.cols(),
          .transposed = transposed};
}

OpRecord describe(const Op& op) {
  return std::visit(
      [](const auto& any) -> OpRecord {
        const Work work = work_of(any);
        const OpKind kind = kKindOf<std::decay_t<decltype(any)>>;
        OpRecord record{
            {kind, work.dtype, work.variant, work.dims}, work.flops, work.bytes, any.label};
        if constexpr (std::is_same_v<std::decay_t<decltype(any)>, Matmul>) {
          record.input = any.a.tensor.storage_id();
        }
        return record;
      },
      op);
}

}  // namespace tpsim
