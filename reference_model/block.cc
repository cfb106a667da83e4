#include "reference_model/block.h"

#include "reference_model/linear.h"
#include "reference_model/mappings.h"

namespace tpsim {
namespace {

bool llama_names(const ModelSpec& model) { return model.mlp == MlpKind::kSwiglu; }

std::string prefix_of(const ModelSpec& model, std::int64_t layer) {
  return (llama_names(model) ? "model.layers." : "h.") + std::to_string(layer) + ".";
}

}  // namespace

ParameterUnit& Block::add_to(const RankContext& context, ParameterStore& store,
                             std::int64_t layer) {
  const std::string prefix = prefix_of(context.model, layer);
  std::vector<ParameterSpec> specs;
  Norm::specify(context.model, prefix + "input_layernorm", specs);
  Attention::specify(context, prefix, specs);
  Norm::specify(context.model, prefix + "post_attention_layernorm", specs);
  Mlp::specify(context, prefix, specs);
  return store.add_unit("block", std::move(specs));
}

Block::Block(const RankContext& context, ParameterStore& store, ParameterUnit& unit,
             std::int64_t layer)
    : context_(context),
      store_(store),
      unit_(unit),
      norm1_(unit, prefix_of(context.model, layer) + "input_layernorm"),
      norm2_(unit, prefix_of(context.model, layer) + "post_attention_layernorm"),
      attention_(context, unit, prefix_of(context.model, layer)),
      mlp_(context, unit, prefix_of(context.model, layer)) {}

Tensor Block::forward(const Tensor& x, BlockSaved& saved) {
  store_.begin_forward(unit_);
  Tensor z;
  if (context_.plan.recompute == Recompute::kFull) {
    BlockSaved dropped;
    z = run_forward(x, dropped);
    saved.x = x;
  } else {
    z = run_forward(x, saved);
  }
  store_.end_forward(unit_);
  return z;
}

Tensor Block::run_forward(const Tensor& x, BlockSaved& saved) const {
  const bool after_norm = context_.model.residual_from_after_norm;
  const Tensor n1 = norm1_.forward(context_, x, saved.norm1, "block.norm1");
  const Tensor y = add_residual(attention_.forward(n1, saved.attention), after_norm ? n1 : x,
                                attention_.output_bias(), "attention.residual");
  const Tensor n2 = norm2_.forward(context_, y, saved.norm2, "block.norm2");
  return add_residual(mlp_.forward(n2, saved.mlp), after_norm ? n2 : y, mlp_.output_bias(),
                      "mlp.residual");
}

Tensor Block::add_residual(Tensor partial, const Tensor& residual, Parameter* bias,
                           const char* label) const {
  Tensor sum = leave_tensor_parallel(context_, std::move(partial), label);
  context_.device.run(
      BiasResidual{sum, bias != nullptr ? bias->weight : Tensor(), residual, sum, label});
  return sum;
}

Tensor Block::backward(const Tensor& dz, BlockSaved saved) {
  store_.begin_backward(unit_);
  if (context_.plan.recompute == Recompute::kFull) {
    const Tensor x = std::move(saved.x);
    run_forward(x, saved);
  }
  const bool after_norm = context_.model.residual_from_after_norm;
  const auto branch_backward = [&](const Tensor& dout, Parameter* bias, const auto& layer,
                                   auto layer_saved, const Norm& norm, NormSaved norm_saved,
                                   const char* label) {
    bias_gradient(context_, dout, bias, label);
    const Tensor inside = enter_tensor_parallel(context_, dout, label);
    Tensor dn =
        leave_tensor_parallel(context_, layer.backward(inside, std::move(layer_saved)), label);
    if (after_norm) context_.device.run(BiasResidual{dn, Tensor(), dout, dn, label});
    return norm.backward(context_, dn, norm_saved, after_norm ? Tensor() : dout, label);
  };
  const Tensor dy = branch_backward(dz, mlp_.output_bias(), mlp_, std::move(saved.mlp), norm2_,
                                    std::move(saved.norm2), "mlp.backward");
  Tensor dx = branch_backward(dy, attention_.output_bias(), attention_, std::move(saved.attention),
                              norm1_, std::move(saved.norm1), "attention.backward");
  store_.end_backward(unit_);
  return dx;
}

}  // namespace tpsim
