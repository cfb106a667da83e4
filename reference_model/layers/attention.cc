#include "reference_model/layers/attention.h"

#include "kernels/planned_records.h"
#include "kernels/recurrence_records.h"
#include "reference_model/layers/linear.h"
#include "reference_model/layers/norm.h"
#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/mappings.h"
#include "reference_model/parallel/shared_key_heads.h"

namespace tpsim {
namespace {

constexpr Label kQkv{ModelPart::kAttentionLinear, "attention.qkv"};
constexpr Label kQkvBias{ModelPart::kAttentionLinear, "attention.qkv_bias"};
constexpr Label kOutput{ModelPart::kAttentionLinear, "attention.output"};
constexpr Label kGateLinear{ModelPart::kAttentionLinear, "attention.gate"};
constexpr Label kInputReduced{ModelPart::kColumnParallelBackward, "attention.backward"};
constexpr Label kOutputGate{ModelPart::kActivation, "attention.gate"};
// Checkpoints store the gate's weight as part of the query projection.
constexpr const char* kGateWeight = "self_attn.q_proj.gate";

AttentionCore::Weights core_weights(const ModelSpec& model, ParameterUnit& unit,
                                    const std::string& block) {
  const WeightNames names = names_of(model);
  return {find_parameter(unit, block + names.q_norm + ".weight"),
          find_parameter(unit, block + names.k_norm + ".weight"),
          find_parameter(unit, block + names.sinks)};
}

struct Projection {
  std::string name;
  std::int64_t rows;     // global
  std::int64_t targets;  // bits of WeightPart
};

// Names and widths of the q, k, v matrices.
std::vector<Projection> projections_of(const ModelSpec& model) {
  const std::int64_t q = query_width(model), kv = kv_width(model);
  const WeightNames names = names_of(model);
  constexpr std::int64_t kQ = part_bit(WeightPart::kQuery), kK = part_bit(WeightPart::kKey),
                         kV = part_bit(WeightPart::kValue);
  if (model.fused_qkv) return {{names.projections[0], q + 2 * kv, kQ | kK | kV}};
  std::vector<Projection> all = {{names.projections[0], q, kQ}};
  const KeyValueSource source = model.attention.key_values;
  if (source != KeyValueSource::kEarlierLayer) all.push_back({names.projections[1], kv, kK});
  if (source == KeyValueSource::kProjected) {
    all.push_back(
        {names.projections[2], model.attention.kv_heads * value_dim(model.attention), kV});
  }
  return all;
}

// Adds the q/k norm weights: one weight per entry of a head, shared by all heads (QkNorm::kHead),
// or separate weights for each local head.
void specify_head_norms(SpecList& specs) {
  const AttentionShape& attention = specs.model().attention;
  if (attention.qk_norm == QkNorm::kNone || attention.qk_norm == QkNorm::kPlain) return;
  const WeightNames names = names_of(specs.model());
  const bool shared = attention.qk_norm == QkNorm::kHead;
  for (const auto& [name, heads] :
       {std::pair{names.q_norm, attention.heads}, {names.k_norm, attention.kv_heads}}) {
    const bool has_keys = attention.key_values != KeyValueSource::kEarlierLayer;
    if (!has_keys && name == names.k_norm) continue;
    specs.gain(name + ".weight", (shared ? 1 : heads) * attention.head_dim,
               shared ? Sharding::kPartial : Sharding::kRows);
  }
}

}  // namespace

void ParallelAttention::specify(SpecList& specs) {
  const ModelSpec& model = specs.model();
  const WeightNames names = names_of(model);
  if (model.attention.latent.kv_rank > 0) {
    LatentAttention::specify(specs);
  } else {
    for (const auto& [name, rows, targets] : projections_of(model)) {
      specs.linear(name, {rows, model.hidden}, Sharding::kRows, has_qkv_bias(model), targets);
    }
  }
  specify_head_norms(specs);
  if (model.attention.output_gate) {
    specs.matrix(kGateWeight, query_width(model), model.hidden, Sharding::kRows);
  }
  if (model.attention.score.sinks) {
    specs.vector(names.sinks, model.attention.heads, InitialValue::kZeros, Sharding::kRows);
  }
  specs.linear(names.output, {model.hidden, attention_width(model)}, Sharding::kColumns,
               has_output_bias(model), part_bit(WeightPart::kOutput));
}

ParallelAttention::ParallelAttention(const RankContext& context, ParameterUnit& unit,
                                     const std::string& block)
    : context_(context),
      core_(context, core_weights(context.model, unit, block)),
      gate_(find_parameter(unit, block + kGateWeight)),
      output_(get_parameter(unit, block + names_of(context.model).output + ".weight")),
      output_bias_(find_parameter(unit, block + names_of(context.model).output + ".bias")) {
  if (context.model.attention.latent.kv_rank > 0) {
    latent_.emplace(context, unit, block);
    return;
  }
  // With linear_bias alone, separate q, k, v matrices have biases that count as parameters but are
  // not added to the output: see check_trainable().
  const bool adds_biases = context.model.fused_qkv || context.model.attention.qkv_bias;
  for (const auto& [name, rows, targets] : projections_of(context.model)) {
    projections_.push_back(&get_parameter(unit, block + name + ".weight"));
    projection_biases_.push_back(adds_biases ? find_parameter(unit, block + name + ".bias")
                                             : nullptr);
  }
}

Tensor ParallelAttention::forward(const Tensor& x, AttentionSaved& saved) const {
  if (latent_) {
    saved.x = x;
    saved.core.qkv = latent_->forward(x, saved.latent, core_);
  } else {
    const Tensor inside =
        enter_tensor_parallel(context_, x, {ModelPart::kTensorParallel, "attention.gather"});
    if (needs_input(projections_)) saved.x = kept_input(context_, x, inside);
    saved.core.qkv = project_qkv(inside, saved);
    if (gate_ != nullptr) saved.gate = linear_forward(context_, inside, *gate_, kGateLinear);
    core_.prepare(saved.core);
  }
  core_.forward(saved.core);
  return linear_forward(context_, gated_output(saved), output_, saved.adapters, kOutput);
}

Tensor ParallelAttention::gated_output(AttentionSaved& saved) const {
  const Tensor& context = saved.core.context;
  if (gate_ == nullptr) return context;
  saved.gated = allocate_activation(context_, context.shape(), kOutputGate.text);
  context_.device.note(gate_record(OpKind::kGateForward, context.rows(), context.cols(), false,
                                   context.dtype(), kOutputGate));
  return saved.gated;
}

// Returns the gradient of the core's result, from the gradient of the output projection's input.
// The gate's gradient overwrites the gate.
Tensor ParallelAttention::gate_backward(Tensor dgated) const {
  if (gate_ == nullptr) return dgated;
  Tensor dcontext = allocate_activation(context_, dgated.shape(), kOutputGate.text);
  context_.device.note(gate_record(OpKind::kGateBackward, dgated.rows(), dgated.cols(), false,
                                   dgated.dtype(), kOutputGate));
  return dcontext;
}

void ParallelAttention::add_gate_gradient(const Tensor& x, const Tensor& dx,
                                          const Tensor& dgate) const {
  if (gate_ == nullptr) return;
  linear_input_gradient(context_, matrix_of(dgate), *gate_, matrix_of(dx), 1, kGateLinear);
  linear_weight_gradient(context_, matrix_of(dgate), matrix_of(x), *gate_, kGateLinear);
}

// Separate q, k, v matrices write adjacent columns of one output.
Tensor ParallelAttention::project_qkv(const Tensor& x, AttentionSaved& saved) const {
  std::int64_t width = copied_columns();
  for (const Parameter* projection : projections_) width += projection->weight.rows();
  Tensor qkv = allocate_activation(context_, {x.shape()[0], x.shape()[1], width}, kQkv.text);
  side_by_side_forward(context_, x, projections_, saved.adapters, qkv, kQkv);
  note_copied_columns(x, false);
  add_biases(qkv);
  if (!shares_key_heads(context_)) return qkv;
  return gather_key_heads(context_, core_.layout(), qkv, saved.gathered);
}

// Returns the number of key and value columns of this rank that no projection computes: values
// equal to the keys, or keys and values of an earlier layer.
std::int64_t ParallelAttention::copied_columns() const {
  const ModelSpec& model = context_.model;
  if (model.attention.key_values == KeyValueSource::kProjected) return 0;
  return (2 * kv_width(model) - projected_kv_width(model)) / context_.plan.degrees.tp;
}

void ParallelAttention::note_copied_columns(const Tensor& x, bool backward) const {
  if (copied_columns() == 0) return;
  const double elements = 2.0 * static_cast<double>(x.rows() * copied_columns());
  context_.device.note(planned_pass_record(elements, backward, context_.plan.dtype, kQkv));
}

// Adds the biases of q, k and v. A fused bias, which covers all columns, uses the op for whole
// rows.
void ParallelAttention::add_biases(const Tensor& qkv) const {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < projections_.size(); ++i) {
    const Parameter* bias = projection_biases_[i];
    const std::int64_t width = projections_[i]->weight.rows();
    if (bias != nullptr && width == qkv.cols()) {
      context_.device.run(BiasResidual{qkv, bias->weight, Tensor(), qkv, kQkvBias});
    } else if (bias != nullptr) {
      context_.device.run(ColumnBias{columns_of(qkv, column, width), bias->weight, kQkvBias});
    }
    column += width;
  }
}

void ParallelAttention::bias_gradients(const Tensor& dqkv) const {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < projections_.size(); ++i) {
    Parameter* bias = projection_biases_[i];
    const std::int64_t width = projections_[i]->weight.rows();
    if (bias != nullptr && !bias->is_trained()) continue;
    if (bias != nullptr && width == dqkv.cols()) {
      bias_gradient(context_, dqkv, bias, kQkvBias.text);
    } else if (bias != nullptr) {
      context_.device.run(ColumnBiasGradient{columns_of(dqkv, column, width),
                                             gradient_of(context_.device, bias), kQkvBias});
    }
    column += width;
  }
}

Tensor ParallelAttention::core_backward(const Tensor& dy, AttentionSaved& saved) const {
  const Tensor& multiplied = gate_ != nullptr ? saved.gated : saved.core.context;
  Tensor dcontext = linear_backward(context_, dy, multiplied, output_, saved.adapters, kOutput);
  saved.gated = Tensor();
  dcontext = gate_backward(std::move(dcontext));
  Tensor dqkv = core_.backward(dcontext, saved.core);
  dcontext = Tensor();
  saved.core.qkv = saved.core.context = Tensor();
  return dqkv;
}

Tensor ParallelAttention::backward(const Tensor& dy, AttentionSaved saved) const {
  Tensor dqkv = core_backward(dy, saved);
  if (latent_) return latent_->backward(dqkv, saved.x, std::move(saved.latent), core_);
  core_.prepare_backward(dqkv, saved.core);
  saved.gathered = Tensor();
  if (shares_key_heads(context_)) dqkv = scatter_key_heads(context_, core_.layout(), dqkv);
  Tensor x =
      regather_input(context_, saved.x, {ModelPart::kColumnParallelBackward, "attention.regather"});
  if (overlaps_input_gradient_reduction(context_) && gate_ == nullptr) {
    Tensor dx = side_by_side_input_gradient(context_, dqkv, projections_, saved.adapters, kQkv);
    return leave_overlapped(context_, std::move(dx), kInputReduced, [&] {
      side_by_side_weight_gradient(context_, dqkv, x, projections_, saved.adapters, kQkv);
      bias_gradients(dqkv);
    });
  }
  note_copied_columns(x, true);
  Tensor dx = side_by_side_backward(context_, dqkv, x, projections_, saved.adapters, kQkv);
  add_gate_gradient(x, dx, saved.gate);
  bias_gradients(dqkv);
  dqkv = x = Tensor();
  return leave_tensor_parallel(context_, std::move(dx), kInputReduced);
}

}  // namespace tpsim
