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

BlockUnits Block::add_to(const RankContext& context, ParameterStore& store, std::int64_t layer) {
  const std::string prefix = prefix_of(context.model, layer);
  const bool with_experts = has_experts(context.model);
  std::vector<ParameterSpec> specs;
  Norm::specify(context.model, prefix + "input_layernorm", specs);
  Attention::specify(context, prefix, specs);
  Norm::specify(context.model, prefix + "post_attention_layernorm", specs);
  if (with_experts) {
    Experts::specify_router(context, prefix, specs);
  } else {
    Mlp::specify(context, prefix, specs);
  }
  BlockUnits units{.block = &store.add_unit(std::move(specs))};
  if (with_experts) units.experts = &Experts::add_to(context, store, prefix);
  return units;
}

Block::Block(const RankContext& context, ParameterStore& store, const BlockUnits& units,
             const Place& place)
    : context_(context),
      store_(store),
      units_(units),
      norm1_(*units.block, prefix_of(context.model, place.layer) + "input_layernorm"),
      norm2_(*units.block, prefix_of(context.model, place.layer) + "post_attention_layernorm"),
      attention_(context, *units.block, prefix_of(context.model, place.layer)),
      place_(place) {
  const std::string prefix = prefix_of(context.model, place.layer);
  if (units.experts != nullptr) {
    experts_.emplace(context, *units.block, *units.experts, prefix);
  } else {
    mlp_.emplace(context, *units.block, prefix);
  }
}

Tensor Block::forward(const Tensor& x, BlockSaved& saved) {
  store_.begin_forward(*units_.block);
  if (units_.experts != nullptr) store_.begin_forward(*units_.experts);
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
  store_.end_forward(*units_.block);
  if (units_.experts != nullptr) store_.end_forward(*units_.experts);
  return z;
}

Tensor Block::run_forward(const Tensor& x, BlockSaved& saved) const {
  const bool after_norm = context_.model.residual_from_after_norm;
  const Tensor n1 = norm1_.forward(context_, x, saved.norm1, "block.norm1");
  saved.attention.core.seed = seed_of(saved, 0, true);
  const bool by_rank = context_.plan.sequence_parallel;
  const Tensor y = add_residual(attention_forward(n1, saved), after_norm ? n1 : x,
                                {attention_.output_bias(), saved.attention_mask,
                                 seed_of(saved, 1, by_rank), "attention.residual"});
  const Tensor n2 = norm2_.forward(context_, y, saved.norm2, "block.norm2");
  Parameter* const bias = mlp_ ? mlp_->output_bias() : nullptr;
  return add_residual(mlp_forward(n2, saved), after_norm ? n2 : y,
                      {bias, saved.mlp_mask, seed_of(saved, 2, by_rank), "mlp.residual"});
}

Tensor Block::attention_forward(const Tensor& x, BlockSaved& saved) const {
  return leave_tensor_parallel(context_, attention_.forward(x, saved.attention),
                               {ModelPart::kTensorParallel, "attention.residual"});
}

Tensor Block::mlp_forward(const Tensor& x, BlockSaved& saved) const {
  if (experts_) return experts_->forward(x, saved.experts);
  return leave_tensor_parallel(context_, mlp_->forward(x, saved.mlp),
                               {ModelPart::kTensorParallel, "mlp.residual"});
}

std::uint64_t Block::seed_of(const BlockSaved& saved, int place, bool by_rank) const {
  return dropout_seed(context_, place_.layer, saved.draw, place, by_rank);
}

Tensor Block::add_residual(Tensor sum, const Tensor& residual, const Branch& branch) const {
  const Tensor bias = branch.bias != nullptr ? branch.bias->weight : Tensor();
  const auto rate = static_cast<float>(context_.model.hidden_dropout);
  const Label label{ModelPart::kResidual, branch.label};
  if (rate == 0) {
    context_.device.run(BiasResidual{sum, bias, residual, sum, label});
    return sum;
  }
  branch.mask = allocate_mask(context_, sum, branch.label);
  context_.device.run(
      DropoutForward{sum, bias, residual, sum, branch.mask, rate, branch.seed, label});
  return sum;
}

Tensor Block::drop_backward(const Tensor& dout, const Tensor& mask, const char* label) const {
  if (!mask.defined()) return dout;
  Tensor dx = allocate_activation(context_, dout.shape(), label);
  context_.device.run(DropoutBackward{dout,
                                      mask,
                                      dx,
                                      static_cast<float>(context_.model.hidden_dropout),
                                      {ModelPart::kResidual, label}});
  return dx;
}

Tensor Block::attention_backward(Tensor dy, AttentionSaved saved) const {
  Tensor inside =
      enter_tensor_parallel(context_, dy, {ModelPart::kTensorParallel, "attention.backward"});
  dy = Tensor();
  return leave_tensor_parallel(context_, attention_.backward(inside, std::move(saved)),
                               {ModelPart::kColumnParallelBackward, "attention.backward"});
}

Tensor Block::mlp_backward(Tensor dy, BlockSaved& saved) const {
  if (experts_) return experts_->backward(dy, std::move(saved.experts));
  Tensor inside = enter_tensor_parallel(context_, dy, {ModelPart::kTensorParallel, "mlp.backward"});
  dy = Tensor();
  return leave_tensor_parallel(context_, mlp_->backward(inside, std::move(saved.mlp)),
                               {ModelPart::kColumnParallelBackward, "mlp.backward"});
}

Tensor Block::backward(const Tensor& dz, BlockSaved saved) {
  store_.begin_backward(*units_.block);
  if (units_.experts != nullptr) store_.begin_backward(*units_.experts);
  if (place_.recomputes) {
    const Tensor x = std::move(saved.x);
    run_forward(x, saved);
  }
  const bool after_norm = context_.model.residual_from_after_norm;
  // `inner`: from the gradient behind the branch to that behind its norm.
  const auto branch_backward = [&](const Tensor& dout, Parameter* bias, const auto& inner,
                                   const Norm& norm, NormSaved norm_saved, Tensor mask,
                                   const char* label) {
    Tensor dropped = drop_backward(dout, mask, label);
    mask = Tensor();
    bias_gradient(context_, dropped, bias, label);
    Tensor dn = inner(std::move(dropped));
    if (after_norm)
      context_.device.run(BiasResidual{dn, Tensor(), dout, dn, {ModelPart::kResidual, label}});
    return norm.backward(context_, dn, norm_saved, after_norm ? Tensor() : dout, label);
  };
  const Tensor dy = branch_backward(
      dz, mlp_ ? mlp_->output_bias() : nullptr,
      [&](Tensor d) { return mlp_backward(std::move(d), saved); }, norm2_, std::move(saved.norm2),
      std::move(saved.mlp_mask), "mlp.backward");
  Tensor dx = branch_backward(
      dy, attention_.output_bias(),
      [&](Tensor d) { return attention_backward(std::move(d), std::move(saved.attention)); },
      norm1_, std::move(saved.norm1), std::move(saved.attention_mask), "attention.backward");
  store_.end_backward(*units_.block);
  if (units_.experts != nullptr) store_.end_backward(*units_.experts);
  return dx;
}

}  // namespace tpsim
