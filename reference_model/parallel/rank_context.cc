#include "reference_model/parallel/rank_context.h"

#include <algorithm>

namespace tpsim {

LocalSizes local_sizes(const RankContext& context) {
  const ModelSpec& model = context.model;
  const std::int64_t tp = context.plan.degrees.tp;
  LocalSizes sizes;
  sizes.batch = context.plan.micro_batch;
  sizes.seq = model.seq / context.plan.degrees.cp;
  sizes.seq_share = context.plan.sequence_parallel ? sizes.seq / tp : sizes.seq;
  sizes.heads = model.attention.heads / tp;
  sizes.kv_heads = model.attention.kv_heads / tp;
  if (model.attention.kv_heads > 0) {  // several ranks share one: shared_key_heads.h
    sizes.kv_heads = std::max<std::int64_t>(1, sizes.kv_heads);
  }
  sizes.ffn = model.ffn_hidden / (has_experts(model) ? expert_tensor_ranks(context.plan) : tp);
  sizes.experts = model.experts.count / context.plan.degrees.ep;
  sizes.vocab = padded_vocab(model, tp) / tp;
  sizes.vocab_begin = context.at.tp * sizes.vocab;
  sizes.vocab_columns = std::clamp<std::int64_t>(model.vocab - sizes.vocab_begin, 0, sizes.vocab);
  return sizes;
}

Shape residual_shape(const RankContext& context) {
  const LocalSizes sizes = local_sizes(context);
  return {sizes.seq_share, sizes.batch, context.model.hidden};
}

Shape stage_shape(const RankContext& context) {
  const LocalSizes sizes = local_sizes(context);
  return {sizes.seq_share, sizes.batch, context.model.hidden * context.model.ends.streams};
}

Tensor allocate_mask(const RankContext& context, const Tensor& like, const char* label) {
  return context.device.allocate(like.shape(), DType::kUInt8, MemoryCategory::kActivations, label);
}

std::uint64_t dropout_seed(const RankContext& context, std::int64_t layer, std::int64_t draw,
                           int place, bool by_rank) {
  // Ranks with different tokens draw different masks. Tensor-parallel ranks do so with `by_rank`.
  const std::int64_t parts[] = {layer, draw, place, context.groups.data.rank(),
                                by_rank ? context.at.tp : 0};
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a over 64-bit words
  for (const std::int64_t part : parts) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 1099511628211ULL;
  }
  return hash;
}

Tensor allocate_activation(const RankContext& context, Shape shape, const char* label,
                           AllocationRole role) {
  return context.device.allocate(shape, context.plan.dtype, MemoryCategory::kActivations, label,
                                 role);
}

float greatest_over_world(const RankContext& context, float mine, const Label& label) {
  Tensor most =
      context.device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, label.text);
  context.device.run(Fill{most, mine, label});
  context.groups.world.all_reduce(most, ReduceOp::kMax, label);
  return download_scalar(context.device, most);
}

}  // namespace tpsim
