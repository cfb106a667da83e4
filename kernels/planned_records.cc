#include "kernels/planned_records.h"

#include <algorithm>
#include <cmath>

namespace tpsim {
namespace {

double number(std::int64_t n) { return static_cast<double>(n); }

// Returns the elements of queries, keys, values and outputs. All heads share one key/value head.
double operands(const PlannedOp& op, const PlannedWork& work, std::int64_t heads) {
  const double width = number(op.key_dim + op.value_dim);
  return number(work.batch) * (number(work.queries * heads) + number(work.keys)) * width;
}

OpRecord planned_record(OpKind kind, bool on_matrix_units, double flops, double bytes, DType dtype,
                        const Label& label) {
  return {.key = {kind,
                  dtype,
                  static_cast<std::uint8_t>(on_matrix_units ? 1 : 0),
                  {std::llround(flops), std::llround(bytes)}},
          .flops = flops,
          .bytes = bytes,
          .label = label};
}

}  // namespace

OpRecord planned_pairs_record(const PlannedOp& op, const PlannedWork& work, bool backward,
                              DType dtype, const Label& label) {
  const std::int64_t heads = std::max<std::int64_t>(1, op.heads / work.ranks);
  const double width = number(op.key_dim + op.value_dim);
  // Backward recomputes the scores. With values: 2 GEMMs forward, 5 backward; without: 1 and 3.
  const bool has_values = op.value_dim > 0;
  const double products = !backward ? 2.0 : has_values ? 5.0 : 6.0;
  const double flops = products * work.pairs * number(heads) * width;
  const double bytes = (backward ? 2.0 : 1.0) * operands(op, work, heads) * number(size_of(dtype));
  if (!has_values) {
    const OpKind kind = backward ? OpKind::kPlannedBackward : OpKind::kPlannedForward;
    return planned_record(kind, true, flops, bytes, dtype, label);
  }
  // The record has a window as long as the mean number of keys that a query sees.
  const double seen = work.pairs / (number(work.batch) * number(work.queries));
  const std::int64_t reach =
      std::clamp<std::int64_t>(std::llround(seen), 1, std::max<std::int64_t>(1, work.keys));
  return {.key = {backward ? OpKind::kFlashBackward : OpKind::kFlashForward,
                  dtype,
                  0,
                  {work.batch, work.queries, heads, 1, op.key_dim, work.keys, reach,
                   op.value_dim != op.key_dim ? op.value_dim : 0}},
          .flops = flops,
          .bytes = bytes,
          .label = label};
}

OpRecord planned_pass_record(double elements, bool backward, DType dtype, const Label& label) {
  constexpr double kFlopsOfAnElement = 4;
  const double passed = backward ? 2 * elements : elements;
  return planned_record(backward ? OpKind::kPlannedBackward : OpKind::kPlannedForward, false,
                        kFlopsOfAnElement * passed, passed * number(size_of(dtype)), dtype, label);
}

}  // namespace tpsim
