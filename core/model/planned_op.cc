#include "core/model/planned_op.h"

#include <algorithm>

namespace tpsim {
namespace {

double number(std::int64_t n) { return static_cast<double>(n); }

// Sum over n = 1 .. seq of min(n, limit).
double limited_sum(double seq, double limit) {
  const double w = std::min(seq, limit);
  return w * (w + 1) / 2 + (seq - w) * w;
}

double pair_flops(const PlannedOp& op) {
  return 2.0 * number(op.heads) * number(op.key_dim + op.value_dim);
}

double linear_flops(const PlannedOp& op, std::int64_t tokens) {
  return 2.0 * number(planned_rows(op, tokens)) * number(op.width) * number(op.columns);
}

}  // namespace

double planned_pairs(const PlannedOp& op, std::int64_t seq) {
  double pairs = op.window > 0 ? limited_sum(number(seq), number(op.window)) : 0;
  if (op.stride < 1) return pairs;
  // Query n sees floor(n / stride) keys: each count below seq / stride occurs `stride` times.
  const std::int64_t keys = seq / op.stride, rest = seq % op.stride;
  const double limit = op.most > 0 ? number(op.most) : number(std::max<std::int64_t>(1, keys));
  if (keys > 0) {
    pairs += number(op.stride) * limited_sum(number(keys), limit);
    pairs -= number(op.stride - 1 - rest) * std::min(number(keys), limit);
  }
  return pairs;
}

std::int64_t planned_parameters(const PlannedOp& op) {
  return op.kind == PlannedOpKind::kLinear ? op.width * op.columns + op.parameters : op.parameters;
}

std::int64_t planned_parameters(const std::vector<PlannedOp>& ops) {
  std::int64_t sum = 0;
  for (const PlannedOp& op : ops) sum += planned_parameters(op);
  return sum;
}

std::int64_t planned_parameters(const OuterPart& part) {
  return part.layers * planned_parameters(part.layer_ops) + planned_parameters(part.ops);
}

std::int64_t planned_rows(const PlannedOp& op, std::int64_t tokens) {
  const std::int64_t stride = std::max<std::int64_t>(1, op.stride);
  return (tokens + stride - 1) / stride;
}

PlannedFlops planned_flops(const std::vector<PlannedOp>& ops, std::int64_t seq) {
  PlannedFlops flops;
  const double s = number(seq), causal = s * (s + 1) / 2;
  for (const PlannedOp& op : ops) {
    if (op.kind == PlannedOpKind::kLinear) flops.linear += linear_flops(op, seq);
    if (op.kind != PlannedOpKind::kPairs) continue;
    flops.pairs += pair_flops(op) * s * s * planned_pairs(op, seq) / causal;
  }
  return flops;
}

double planned_flops(const OuterPart& part, std::int64_t seq) {
  const std::int64_t tokens = part.patches > 0 ? part.patches * part.items : seq;
  const auto sum = [&](const std::vector<PlannedOp>& ops) {
    double flops = 0;
    for (const PlannedOp& op : ops) {
      if (op.kind == PlannedOpKind::kLinear) flops += linear_flops(op, tokens);
      if (op.kind == PlannedOpKind::kPairs) flops += pair_flops(op) * number(tokens * part.patches);
    }
    return flops;
  };
  return number(part.layers) * sum(part.layer_ops) + sum(part.ops);
}

}  // namespace tpsim
