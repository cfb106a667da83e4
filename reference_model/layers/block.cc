#include "reference_model/layers/block.h"

#include "reference_model/layers/linear.h"
#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/mappings.h"

namespace tpsim {
namespace {

// Names of the norms of a block.
struct BlockNorms {
  std::string before1, before2, after1, after2;  // empty: none
};
BlockNorms norms_of(const ModelSpec& model) {
  const WeightNames names = names_of(model);
  switch (model.norm_place) {
    case NormPlace::kBefore:
      return {model.mixer == MixerKind::kNone ? "" : names.attention_norm,
              has_feed_forward(model) ? names.mlp_norm : "", "", ""};
    case NormPlace::kTwoParallel: return {names.attention_norm, names.mlp_norm, "", ""};
    case NormPlace::kOneParallel: return {names.attention_norm, "", "", ""};
    case NormPlace::kAfter: return {"", "", names.after_attention_norm, names.after_mlp_norm};
    case NormPlace::kAround:
      return {names.attention_norm, names.mlp_norm, names.after_attention_norm,
              names.after_mlp_norm};
  }
  return {};
}

// Prefix of the weight names of planned ops.
constexpr const char* kPlannedPrefix = "planned.";

bool is_parallel(const ModelSpec& model) {
  return model.norm_place == NormPlace::kOneParallel || model.norm_place == NormPlace::kTwoParallel;
}

}  // namespace

BlockUnits Block::add_to(const RankContext& context, ParameterStore& store, std::int64_t layer) {
  const std::string prefix = block_prefix(context.model, layer);
  const bool with_experts = has_experts(context.model);
  const BlockNorms norms = norms_of(context.model);
  SpecList specs(context, prefix);
  const auto norm = [&](const std::string& name) {
    if (!name.empty()) Norm::specify(name, specs);
  };
  norm(norms.before1);
  if (is_recurrent(context.model)) Recurrence::specify(specs);
  if (context.model.mixer == MixerKind::kAttention) ParallelAttention::specify(specs);
  PlannedOps::specify(context.model.planned, kPlannedPrefix, specs);
  norm(norms.after1);
  norm(norms.before2);
  if (with_experts) {
    Experts::specify_router(specs);
    if (context.model.experts.shared_ffn > 0)
      ParallelMLP::specify(shared_expert(context.model), specs);
  } else if (has_feed_forward(context.model)) {
    ParallelMLP::specify(dense_mlp(context.model), specs);
  }
  norm(norms.after2);
  BlockUnits units{.block = &store.add_unit(specs.take())};
  if (with_experts) units.experts = &Experts::add_to(context, store, prefix);
  return units;
}

Block::Block(const RankContext& context, ParameterStore& store, const BlockUnits& units,
             const Place& place)
    : context_(context), store_(store), units_(units), place_(place) {
  const std::string prefix = block_prefix(context.model, place.layer);
  const BlockNorms norms = norms_of(context.model);
  const auto norm = [&](std::optional<Norm>& into, const std::string& name) {
    if (!name.empty()) into.emplace(*units.block, prefix + name);
  };
  norm(norm1_, norms.before1);
  norm(norm2_, norms.before2);
  norm(after1_, norms.after1);
  norm(after2_, norms.after2);
  if (is_recurrent(context.model)) recurrence_.emplace(context, *units.block, prefix);
  if (context.model.mixer == MixerKind::kAttention) {
    attention_.emplace(context, *units.block, prefix);
  }
  if (!context.model.planned.empty()) {
    planned_.emplace(context, *units.block, context.model.planned, prefix + kPlannedPrefix);
  }
  if (units.experts != nullptr) {
    experts_.emplace(context, store, *units.block, *units.experts, prefix);
    if (context.model.experts.shared_ffn > 0) {
      mlp_.emplace(context, *units.block, shared_expert(context.model), prefix);
    }
  } else if (has_feed_forward(context.model)) {
    mlp_.emplace(context, *units.block, dense_mlp(context.model), prefix);
  }
}

Tensor Block::forward(const Tensor& x, BlockSaved& saved) {
  store_.begin_forward(*units_.block);
  if (units_.experts != nullptr) store_.begin_forward(*units_.experts);
  saved.draw = forwards_++;
  Tensor z;
  if (recomputes() || !has_backward()) {
    BlockSaved dropped;
    dropped.draw = saved.draw;
    z = run_forward(x, dropped);
    if (has_backward()) saved.x = x;
  } else {
    z = run_forward(x, saved);
  }
  store_.end_forward(*units_.block);
  if (units_.experts != nullptr) store_.end_forward(*units_.experts);
  return z;
}

Tensor Block::run_forward(const Tensor& x, BlockSaved& saved) const {
  if (planned_ && !plans_mixer()) planned_->run(x, saved.planned);
  if (is_parallel(context_.model)) return run_parallel(x, saved);
  const bool after_norm = context_.model.residual_from_after_norm;
  const bool by_rank = context_.plan.sequence_parallel;
  Tensor y = x;
  if (mixes()) {
    const Tensor n1 = norm1_ ? norm1_->forward(context_, x, saved.norm1, "block.norm1") : x;
    saved.attention.core.seed = seed_of(saved, 0, true);
    y = add_residual(mixer_forward(n1, saved), after_norm ? n1 : x,
                     {mixer_bias(), saved.attention_mask, seed_of(saved, 1, by_rank),
                      "attention.residual", after1_ ? &*after1_ : nullptr, &saved.after1});
  }
  if (!has_next_branch()) return y;
  const Tensor n2 = norm2_ ? norm2_->forward(context_, y, saved.norm2, "block.norm2") : y;
  return add_residual(mlp_forward(n2, saved), after_norm ? n2 : y,
                      {mlp_bias(), saved.mlp_mask, seed_of(saved, 2, by_rank), "mlp.residual",
                       after2_ ? &*after2_ : nullptr, &saved.after2});
}

// z = x + attention(norm(x)) + mlp(norm(x)), with two norms or one shared norm.
Tensor Block::run_parallel(const Tensor& x, BlockSaved& saved) const {
  const Tensor n1 = norm1_->forward(context_, x, saved.norm1, "block.norm1");
  saved.attention.core.seed = seed_of(saved, 0, true);
  const bool by_rank = context_.plan.sequence_parallel;
  const Tensor y = add_residual(
      mixer_forward(n1, saved), x,
      {mixer_bias(), saved.attention_mask, seed_of(saved, 1, by_rank), "attention.residual"});
  const Tensor n2 = norm2_ ? norm2_->forward(context_, x, saved.norm2, "block.norm2") : n1;
  return add_residual(mlp_forward(n2, saved), y,
                      {mlp_bias(), saved.mlp_mask, seed_of(saved, 2, by_rank), "mlp.residual"});
}

Tensor Block::mixer_forward(const Tensor& x, BlockSaved& saved) const {
  Tensor mixed = plans_mixer() ? planned_->mix(x, saved.planned)
                 : recurrence_ ? recurrence_->forward(x, saved.recurrence)
                               : attention_->forward(x, saved.attention);
  return leave_tensor_parallel(context_, std::move(mixed),
                               {ModelPart::kTensorParallel, "attention.residual"});
}

Tensor Block::mlp_forward(const Tensor& x, BlockSaved& saved) const {
  const auto dense = [&] {
    return leave_tensor_parallel(context_, mlp_->forward(x, saved.mlp),
                                 {ModelPart::kTensorParallel, "mlp.residual"});
  };
  if (!experts_) return dense();
  Tensor routed = experts_->forward(x, saved.experts);
  if (mlp_) context_.device.run(Add{dense(), routed, {ModelPart::kExperts, "experts.shared"}});
  return routed;
}

std::uint64_t Block::seed_of(const BlockSaved& saved, int place, bool by_rank) const {
  return dropout_seed(context_, place_.layer, saved.draw, place, by_rank);
}

Tensor Block::add_residual(Tensor sum, const Tensor& residual, const Branch& branch) const {
  const Tensor bias = weight_of(branch.bias);
  const auto rate = static_cast<float>(context_.model.hidden_dropout);
  const Label label{ModelPart::kResidual, branch.label};
  if (branch.after != nullptr) {
    if (bias.defined()) context_.device.run(BiasResidual{sum, bias, Tensor(), sum, label});
    sum = branch.after->forward(context_, sum, *branch.after_saved, branch.label);
    context_.device.run(BiasResidual{sum, Tensor(), residual, sum, label});
    return sum;
  }
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

Tensor Block::mixer_backward(Tensor dy, BlockSaved& saved) const {
  Tensor inside =
      enter_tensor_parallel(context_, dy, {ModelPart::kTensorParallel, "attention.backward"});
  dy = Tensor();
  if (plans_mixer()) return planned_->mix_backward(std::move(saved.planned));
  return recurrence_ ? recurrence_->backward(inside, std::move(saved.recurrence))
                     : attention_->backward(inside, std::move(saved.attention));
}

Tensor Block::mlp_backward(Tensor dy, BlockSaved& saved) const {
  const auto dense = [&](Tensor slope) {
    Tensor inside =
        enter_tensor_parallel(context_, slope, {ModelPart::kTensorParallel, "mlp.backward"});
    slope = Tensor();
    return mlp_->backward(inside, std::move(saved.mlp));
  };
  if (!experts_) return dense(std::move(dy));
  Tensor dx = experts_->backward(dy, std::move(saved.experts));
  if (mlp_) {
    context_.device.run(Add{dense(std::move(dy)), dx, {ModelPart::kExperts, "experts.shared"}});
  }
  return dx;
}

// Backward of run_parallel(). If the branches share a norm, their gradients are added before the
// norm's backward.
Tensor Block::parallel_backward(const Tensor& dz, BlockSaved& saved) const {
  const auto of_branch = [&](const Tensor& mask, Parameter* bias, const char* label) {
    Tensor dropped = drop_backward(dz, mask, label);
    bias_gradient(context_, dropped, bias, label);
    return dropped;
  };
  Tensor dn2 = mlp_backward(of_branch(saved.mlp_mask, mlp_bias(), "mlp.backward"), saved);
  Tensor dn1 =
      mixer_backward(of_branch(saved.attention_mask, mixer_bias(), "attention.backward"), saved);
  if (!norm2_) {
    context_.device.run(Add{dn2, dn1, {ModelPart::kResidual, "block.parallel"}});
    return norm1_->backward(context_, dn1, saved.norm1, dz, "attention.backward");
  }
  const Tensor dx = norm2_->backward(context_, dn2, saved.norm2, dz, "mlp.backward");
  return norm1_->backward(context_, dn1, saved.norm1, dx, "attention.backward");
}

Tensor Block::run_backward(const Tensor& dz, BlockSaved& saved) const {
  if (is_parallel(context_.model)) return parallel_backward(dz, saved);
  const bool after_norm = context_.model.residual_from_after_norm;
  // `inner` maps the gradient of the branch's output to the gradient of its normed input.
  const auto branch_backward = [&](const Tensor& dout, Parameter* bias, const auto& inner,
                                   const Norms& norms, Tensor mask, const char* label) {
    Tensor dropped = drop_backward(dout, mask, label);
    mask = Tensor();
    if (norms.after != nullptr) {
      dropped = norms.after->backward(context_, dropped, norms.after_saved, Tensor(), label);
    }
    bias_gradient(context_, dropped, bias, label);
    Tensor dn = inner(std::move(dropped));
    if (after_norm || norms.before == nullptr)
      context_.device.run(BiasResidual{dn, Tensor(), dout, dn, {ModelPart::kResidual, label}});
    if (norms.before == nullptr) return dn;
    return norms.before->backward(context_, dn, norms.before_saved, after_norm ? Tensor() : dout,
                                  label);
  };
  const auto pointer = [](const std::optional<Norm>& norm) { return norm ? &*norm : nullptr; };
  Tensor dy = dz;
  if (has_next_branch()) {
    dy = branch_backward(
        dz, mlp_bias(), [&](Tensor d) { return mlp_backward(std::move(d), saved); },
        Norms{pointer(norm2_), std::move(saved.norm2), pointer(after2_), std::move(saved.after2)},
        std::move(saved.mlp_mask), "mlp.backward");
  }
  if (!mixes()) return dy;
  return branch_backward(
      dy, mixer_bias(), [&](Tensor d) { return mixer_backward(std::move(d), saved); },
      Norms{pointer(norm1_), std::move(saved.norm1), pointer(after1_), std::move(saved.after1)},
      std::move(saved.attention_mask), "attention.backward");
}

void Block::begin_backward(BlockSaved& saved) {
  if (!has_backward()) return;
  store_.begin_backward(*units_.block);
  if (units_.experts != nullptr) store_.begin_backward(*units_.experts);
  if (recomputes()) {
    const Tensor x = std::move(saved.x);
    run_forward(x, saved);
  }
}

Tensor Block::finish_backward(const Tensor& dz, BlockSaved saved) {
  if (!has_backward()) return dz;
  Tensor dx = run_backward(dz, saved);
  if (planned_ && !plans_mixer()) planned_->run_backward(dx, std::move(saved.planned));
  store_.finish_shares();
  store_.end_backward(*units_.block);
  if (units_.experts != nullptr) store_.end_backward(*units_.experts);
  return dx;
}

}  // namespace tpsim
