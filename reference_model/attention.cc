#include "reference_model/attention.h"

#include "reference_model/linear.h"
#include "reference_model/mappings.h"
#include "reference_model/norm.h"

namespace tpsim {
namespace {

constexpr Label kQkv{ModelPart::kLinear, "attention.qkv"};
constexpr Label kQkvBias{ModelPart::kLinear, "attention.qkv_bias"};
constexpr Label kOutput{ModelPart::kLinear, "attention.output"};

struct Projection {
  const char* name;
  std::int64_t rows;  // global
};

// Names and widths of the q, k, v matrices.
std::vector<Projection> projections_of(const ModelSpec& model) {
  const std::int64_t q = query_width(model), kv = kv_width(model);
  if (model.fused_qkv) return {{"self_attention.query_key_value", q + 2 * kv}};
  if (model.mlp == MlpKind::kSwiglu) {
    return {{"self_attn.q_proj", q}, {"self_attn.k_proj", kv}, {"self_attn.v_proj", kv}};
  }
  return {{"self_attention.query", q}, {"self_attention.key", kv}, {"self_attention.value", kv}};
}

const char* output_name(const ModelSpec& model) {
  return model.mlp == MlpKind::kSwiglu ? "self_attn.o_proj" : "self_attention.dense";
}

}  // namespace

void Attention::specify(const RankContext& context, const std::string& block,
                        std::vector<ParameterSpec>& specs) {
  const ModelSpec& model = context.model;
  const std::int64_t tp = context.plan.degrees.tp;
  for (const auto& [name, rows] : projections_of(model)) {
    specs.push_back({.name = block + name + ".weight",
                     .shape = {rows / tp, model.hidden},
                     .sharding = Sharding::kRows,
                     .deviation = model.initializer_range,
                     .global_rows = rows});
    if (model.linear_bias) {
      specs.push_back({.name = block + name + ".bias",
                       .shape = {rows / tp},
                       .sharding = Sharding::kRows,
                       .initial = InitialValue::kZeros,
                       .global_rows = rows});
    }
  }
  specs.push_back({.name = block + output_name(model) + ".weight",
                   .shape = {model.hidden, query_width(model) / tp},
                   .sharding = Sharding::kColumns,
                   .deviation = model.initializer_range,
                   .global_rows = model.hidden});
  if (model.linear_bias) {
    specs.push_back({.name = block + output_name(model) + ".bias",
                     .shape = {model.hidden},
                     .initial = InitialValue::kZeros,
                     .global_rows = model.hidden});
  }
}

Attention::Attention(const RankContext& context, ParameterUnit& unit, const std::string& block)
    : context_(context),
      core_(context),
      output_(get_parameter(unit, block + output_name(context.model) + ".weight")),
      output_bias_(find_parameter(unit, block + output_name(context.model) + ".bias")) {
  for (const auto& [name, rows] : projections_of(context.model)) {
    projections_.push_back(&get_parameter(unit, block + name + ".weight"));
    projection_biases_.push_back(find_parameter(unit, block + name + ".bias"));
  }
}

Tensor Attention::forward(const Tensor& x, AttentionSaved& saved) const {
  saved.x = x;
  saved.core.qkv = project_qkv(
      enter_tensor_parallel(context_, x, {ModelPart::kTensorParallel, "attention.gather"}));
  if (context_.model.attention.position == PositionKind::kRotary) {
    core_.rotate(saved.core.qkv, false);
  }
  core_.forward(saved.core);
  return linear_forward(context_, saved.core.context, output_.weight, kOutput);
}

// Separate matrices write adjacent columns of one output.
Tensor Attention::project_qkv(const Tensor& x) const {
  const Shape rows{x.shape()[0], x.shape()[1], qkv_width(core_.layout())};
  Tensor qkv = allocate_activation(context_, rows, kQkv.text);
  side_by_side_forward(context_, x, projections_, qkv, kQkv);
  if (projection_biases_.size() == 1 && projection_biases_[0] != nullptr) {
    context_.device.run(BiasResidual{qkv, projection_biases_[0]->weight, Tensor(), qkv, kQkvBias});
  }
  return qkv;
}

Tensor Attention::backward(const Tensor& dy, AttentionSaved saved) const {
  Tensor dcontext = linear_input_gradient(context_, dy, output_.weight, kOutput);
  linear_weight_gradient(context_, dy, saved.core.context, output_, kOutput);
  Tensor dqkv = core_.backward(dcontext, saved.core);
  dcontext = Tensor();
  saved.core.qkv = saved.core.context = Tensor();
  if (context_.model.attention.position == PositionKind::kRotary) core_.rotate(dqkv, true);

  const Tensor x = enter_tensor_parallel(
      context_, saved.x, {ModelPart::kColumnParallelBackward, "attention.regather"});
  Tensor dx = side_by_side_backward(context_, dqkv, x, projections_, kQkv);
  if (projection_biases_.size() == 1) {
    bias_gradient(context_, dqkv, projection_biases_[0], kQkvBias.text);
  }
  return dx;
}

}  // namespace tpsim
