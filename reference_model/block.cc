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
             const Place& place)
    : context_(context),
      store_(store),
      unit_(unit),
      norm1_(unit, prefix_of(context.model, place.layer) + "input_layernorm"),
      norm2_(unit, prefix_of(context.model, place.layer) + "post_attention_layernorm"),
      attention_(context, unit, prefix_of(context.model, place.layer)),
      mlp_(context, unit, prefix_of(context.model, place.layer)),
      place_(place) {}

Tensor Block::forward(const Tensor& x, BlockSaved& saved) {
  store_.begin_forward(unit_);
  saved.draw = forwards_++;
  Tensor z;
  if (place_.recomputes) {
    BlockSaved dropped;
    dropped.draw = saved.draw;
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
  saved.attention.core.seed = seed_of(saved, 0, true);
  const bool by_rank = context_.plan.sequence_parallel;
  const Tensor y = add_residual(attention_.forward(n1, saved.attention), after_norm ? n1 : x,
                                {attention_.output_bias(), saved.attention_mask,
                                 seed_of(saved, 1, by_rank), "attention.residual"});
  const Tensor n2 = norm2_.forward(context_, y, saved.norm2, "block.norm2");
  return add_residual(
      mlp_.forward(n2, saved.mlp), after_norm ? n2 : y,
      {mlp_.output_bias(), saved.mlp_mask, seed_of(saved, 2, by_rank), "mlp.residual"});
}

std::uint64_t Block::seed_of(const BlockSaved& saved, int place, bool by_rank) const {
  return dropout_seed(context_, place_.layer, saved.draw, place, by_rank);
}

Tensor Block::add_residual(Tensor partial, const Tensor& residual, const Branch& branch) const {
  Tensor sum = leave_tensor_parallel(context_, std::move(partial), branch.label);
  const Tensor bias = branch.bias != nullptr ? branch.bias->weight : Tensor();
  const auto rate = static_cast<float>(context_.model.hidden_dropout);
  if (rate == 0) {
    context_.device.run(BiasResidual{sum, bias, residual, sum, branch.label});
    return sum;
  }
  branch.mask = allocate_mask(context_, sum, branch.label);
  context_.device.run(
      DropoutForward{sum, bias, residual, sum, branch.mask, rate, branch.seed, branch.label});
  return sum;
}

Tensor Block::drop_backward(const Tensor& dout, const Tensor& mask, const char* label) const {
  if (!mask.defined()) return dout;
  Tensor dx = allocate_activation(context_, dout.shape(), label);
  context_.device.run(
      DropoutBackward{dout, mask, dx, static_cast<float>(context_.model.hidden_dropout), label});
  return dx;
}

Tensor Block::backward(const Tensor& dz, BlockSaved saved) {
  store_.begin_backward(unit_);
  if (place_.recomputes) {
    const Tensor x = std::move(saved.x);
    run_forward(x, saved);
  }
  const bool after_norm = context_.model.residual_from_after_norm;
  const auto branch_backward = [&](const Tensor& dout, Parameter* bias, const auto& layer,
                                   auto layer_saved, const Norm& norm, NormSaved norm_saved,
                                   Tensor mask, const char* label) {
    Tensor dropped = drop_backward(dout, mask, label);
    mask = Tensor();
    bias_gradient(context_, dropped, bias, label);
    Tensor inside = enter_tensor_parallel(context_, dropped, label);
    dropped = Tensor();
    Tensor dn =
        leave_tensor_parallel(context_, layer.backward(inside, std::move(layer_saved)), label);
    inside = Tensor();
    if (after_norm) context_.device.run(BiasResidual{dn, Tensor(), dout, dn, label});
    return norm.backward(context_, dn, norm_saved, after_norm ? Tensor() : dout, label);
  };
  const Tensor dy =
      branch_backward(dz, mlp_.output_bias(), mlp_, std::move(saved.mlp), norm2_,
                      std::move(saved.norm2), std::move(saved.mlp_mask), "mlp.backward");
  Tensor dx = branch_backward(dy, attention_.output_bias(), attention_, std::move(saved.attention),
                              norm1_, std::move(saved.norm1), std::move(saved.attention_mask),
                              "attention.backward");
  store_.end_backward(unit_);
  return dx;
}

}  // namespace tpsim
