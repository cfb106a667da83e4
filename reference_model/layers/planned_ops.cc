#include "reference_model/layers/planned_ops.h"

#include "reference_model/layers/linear.h"
#include "reference_model/parallel/mappings.h"

namespace tpsim {
namespace {

constexpr Label kLinear{ModelPart::kAttentionLinear, "planned.linear"};
// Label of small GEMMs on a sequence shard, as in hyper-connections. These GEMMs are not quantized.
constexpr Label kTokenLinear{ModelPart::kResidual, "planned.linear"};
constexpr Label kPairs{ModelPart::kAttentionCore, "planned.pairs"};
constexpr Label kIndexer{ModelPart::kRecurrence, "planned.indexer"};
constexpr Label kPass{ModelPart::kResidual, "planned.pass"};
constexpr Label kPlannedGather{ModelPart::kTensorParallel, "planned.gather"};
constexpr Label kRegather{ModelPart::kColumnParallelBackward, "planned.regather"};
constexpr Label kReduced{ModelPart::kColumnParallelBackward, "planned.backward"};

Sharding weight_sharding(PlannedSharding sharding) {
  switch (sharding) {
    case PlannedSharding::kRows: return Sharding::kRows;
    case PlannedSharding::kColumns: return Sharding::kColumns;
    case PlannedSharding::kWhole:
    case PlannedSharding::kTokens: break;
  }
  return Sharding::kReplicated;
}

Label linear_label(const PlannedOp& op) {
  return op.sharding == PlannedSharding::kTokens ? kTokenLinear : kLinear;
}

Label pairs_label(const PlannedOp& op) { return op.value_dim > 0 ? kPairs : kIndexer; }

std::string others_name(const PlannedOp& op) { return op.name + ".parameters"; }

}  // namespace

void PlannedOps::specify(const std::vector<PlannedOp>& ops, const std::string& prefix,
                         SpecList& specs) {
  for (const PlannedOp& op : ops) {
    const Sharding sharding = weight_sharding(op.sharding);
    if (op.kind == PlannedOpKind::kLinear) {
      specs.matrix(prefix + op.name + ".weight", op.width, op.columns, sharding);
    }
    const bool by_rows = sharding == Sharding::kRows;
    if (op.parameters > 0) {
      specs.vector(prefix + others_name(op), op.parameters, InitialValue::kOnes,
                   by_rows ? Sharding::kRows : Sharding::kReplicated);
    }
  }
}

PlannedOps::PlannedOps(const RankContext& context, ParameterUnit& unit,
                       const std::vector<PlannedOp>& ops, const std::string& prefix)
    : context_(context), ops_(ops) {
  for (const PlannedOp& op : ops) {
    weights_.push_back({find_parameter(unit, prefix + op.name + ".weight"),
                        find_parameter(unit, prefix + others_name(op))});
  }
}

bool PlannedOps::needs_all_tokens() const {
  for (const PlannedOp& op : ops_) {
    if (op.sharding != PlannedSharding::kTokens) return true;
  }
  return false;
}

std::int64_t PlannedOps::ranks_of(const PlannedOp& op) const {
  return op.sharding == PlannedSharding::kRows ? context_.plan.degrees.tp : 1;
}

PlannedWork PlannedOps::work_of(const PlannedOp& op, const Tensor& rows,
                                std::int64_t patches) const {
  PlannedWork work{.batch = rows.shape()[1],
                   .queries = rows.shape()[0],
                   .keys = context_.model.seq,
                   .pairs = 0,
                   .ranks = ranks_of(op)};
  if (patches > 0) {
    work.batch *= work.queries / patches;
    work.queries = work.keys = patches;
    work.pairs = static_cast<double>(work.batch * patches) * static_cast<double>(patches);
    return work;
  }
  // Context-parallel ranks have equal parts of the query-key pairs of a sequence.
  const double share = static_cast<double>(work.queries) / static_cast<double>(context_.model.seq);
  work.pairs = static_cast<double>(work.batch) * share * planned_pairs(op, context_.model.seq);
  return work;
}

Tensor PlannedOps::allocate_like(const Tensor& rows, const PlannedOp& op,
                                 std::int64_t width) const {
  const bool is_linear = op.kind == PlannedOpKind::kLinear;
  const std::int64_t positions = is_linear ? planned_rows(op, rows.shape()[0]) : rows.shape()[0];
  return allocate_activation(context_, {positions, rows.shape()[1], width}, kLinear.text);
}

// Returns a linear op's input: the latest result with the op's number of columns, else the block's
// input if it fits, else a new tensor.
Tensor PlannedOps::input_of(std::size_t index, const Inputs& inputs,
                            const PlannedSaved& saved) const {
  const PlannedOp& op = ops_[index];
  const std::int64_t columns = weights_[index].matrix->weight.cols();
  const Tensor& base = inputs.of(op);
  const std::int64_t positions = planned_rows(op, base.shape()[0]);
  const auto fits = [&](const Tensor& tensor) {
    return tensor.defined() && tensor.cols() == columns && tensor.shape()[0] == positions;
  };
  for (std::size_t i = index; i-- > 0;) {
    if (i < saved.results.size() && fits(saved.results[i])) return saved.results[i];
  }
  return fits(base) ? base : allocate_like(base, op, columns);
}

void PlannedOps::op_forward(std::size_t index, const Inputs& inputs, PlannedSaved& saved) const {
  const PlannedOp& op = ops_[index];
  const Tensor& rows = inputs.of(op);
  Tensor result;
  if (op.kind == PlannedOpKind::kLinear) {
    const Tensor input = input_of(index, inputs, saved);
    const Parameter& matrix = *weights_[index].matrix;
    result = allocate_like(rows, op, matrix.weight.rows());
    linear_forward(context_, matrix_of(input), matrix, matrix_of(result), linear_label(op));
  } else {
    if (op.width > 0) result = allocate_like(rows, op, op.width / ranks_of(op));
    if (op.kind == PlannedOpKind::kPairs) {
      context_.device.note(planned_pairs_record(op, work_of(op, rows, inputs.patches), false,
                                                context_.plan.dtype, pairs_label(op)));
    } else if (op.moved > 0) {
      const double elements = static_cast<double>(rows.rows() * op.moved / ranks_of(op));
      context_.device.note(planned_pass_record(elements, false, context_.plan.dtype, kPass));
    }
  }
  saved.results.push_back(std::move(result));
}

void PlannedOps::op_backward(std::size_t index, const Inputs& inputs, PlannedSaved& saved) const {
  const PlannedOp& op = ops_[index];
  const Weights& weights = weights_[index];
  const Tensor& rows = inputs.of(op);
  if (weights.others != nullptr) zero_if_fresh(context_.device, *weights.others);
  if (op.kind == PlannedOpKind::kLinear) {
    const Tensor input = input_of(index, inputs, saved);
    const Tensor dy = allocate_like(rows, op, weights.matrix->weight.rows());
    saved.results[index] = Tensor();
    const Tensor dx = allocate_like(rows, op, weights.matrix->weight.cols());
    linear_input_gradient(context_, matrix_of(dy), *weights.matrix, matrix_of(dx), 0,
                          linear_label(op));
    linear_weight_gradient(context_, matrix_of(dy), matrix_of(input), *weights.matrix,
                           linear_label(op));
    return;
  }
  Tensor slope;
  if (op.width > 0) slope = allocate_like(rows, op, op.width / ranks_of(op));
  if (op.kind == PlannedOpKind::kPairs) {
    context_.device.note(planned_pairs_record(op, work_of(op, rows, inputs.patches), true,
                                              context_.plan.dtype, pairs_label(op)));
  } else if (op.moved > 0) {
    const double elements = static_cast<double>(rows.rows() * op.moved / ranks_of(op));
    context_.device.note(planned_pass_record(elements, true, context_.plan.dtype, kPass));
  }
  saved.results[index] = Tensor();
}

void PlannedOps::ops_forward(const Inputs& inputs, PlannedSaved& saved) const {
  for (std::size_t i = 0; i < ops_.size(); ++i) op_forward(i, inputs, saved);
}

void PlannedOps::ops_backward(const Inputs& inputs, PlannedSaved& saved) const {
  saved.results.resize(ops_.size());
  for (std::size_t i = ops_.size(); i-- > 0;) op_backward(i, inputs, saved);
}

Tensor PlannedOps::mix(const Tensor& x, PlannedSaved& saved) const {
  const Tensor inside = enter_tensor_parallel(context_, x, kPlannedGather);
  ops_forward({.inside = inside, .share = x}, saved);
  saved.x = kept_input(context_, x, inside);
  Tensor sum;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const bool is_result =
        ops_[i].sharding == PlannedSharding::kColumns && ops_[i].width == context_.model.hidden;
    if (is_result) std::swap(sum, saved.results[i]);
  }
  return sum;
}

Tensor PlannedOps::mix_backward(PlannedSaved saved) const {
  const Tensor inside = regather_input(context_, saved.x, kRegather);
  // The ops are not executed, so only sizes matter: the sequence shard is a view of the gathered
  // tensor.
  const Shape share{residual_shape(context_)[0], inside.shape()[1], inside.shape()[2]};
  ops_backward({.inside = inside, .share = inside.slice(0, share)}, saved);
  Tensor dx = allocate_activation(context_, inside.shape(), kReduced.text);
  return leave_tensor_parallel(context_, std::move(dx), kReduced);
}

void PlannedOps::run(const Tensor& x, PlannedSaved& saved) const {
  const Tensor inside = needs_all_tokens() ? enter_tensor_parallel(context_, x, kPlannedGather) : x;
  ops_forward({.inside = inside, .share = x}, saved);
  saved.x = x;
}

void PlannedOps::run_backward(const Tensor& dx, PlannedSaved saved) const {
  const bool gathers = needs_all_tokens();
  const Tensor inside = gathers ? enter_tensor_parallel(context_, saved.x, kRegather) : saved.x;
  ops_backward({.inside = inside, .share = saved.x}, saved);
  bool is_sharded = false;
  for (const PlannedOp& op : ops_) is_sharded |= op.sharding == PlannedSharding::kRows;
  if (!is_sharded) return;
  Tensor sum = allocate_activation(context_, inside.shape(), kReduced.text);
  sum = leave_tensor_parallel(context_, std::move(sum), kReduced);
  context_.device.run(Add{sum, dx, kPass});
}

void PlannedOps::run_whole(const Tensor& x, std::int64_t patches, PlannedSaved& saved) const {
  ops_forward({.inside = x, .share = x, .patches = patches}, saved);
  saved.x = x;
}

void PlannedOps::run_whole_backward(std::int64_t patches, PlannedSaved saved) const {
  const Tensor x = saved.x;
  ops_backward({.inside = x, .share = x, .patches = patches}, saved);
}

}  // namespace tpsim
