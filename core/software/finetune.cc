#include "core/software/finetune.h"

#include <initializer_list>

namespace tpsim {
namespace {

using Part = WeightPart;

// Calls visit(parts, in, out, count, has_bias) for the linear layers of one block, where a token
// uses `experts` experts. `parts`: bits of the parts that a layer joins.
template <class Visit>
void for_each_linear(const ModelSpec& block, std::int64_t experts, const Visit& visit) {
  const auto add = [&](std::initializer_list<Part> parts, std::int64_t in, std::int64_t out,
                       std::int64_t count, bool has_bias) {
    std::int64_t bits = 0;
    for (const Part part : parts) bits |= part_bit(part);
    if (in > 0 && out > 0) visit(bits, in, out, count, has_bias);
  };
  const AttentionShape& attention = block.attention;
  const std::int64_t q = query_width(block), kv = kv_width(block), h = block.hidden;
  const bool biased = has_qkv_bias(block);
  if (block.mixer == MixerKind::kAttention && attention.latent.kv_rank > 0) {
    const LatentShape& latent = attention.latent;
    const std::int64_t up = attention.heads * (latent.nope_dim + latent.value_dim);
    add({Part::kQuery}, h, latent.q_rank > 0 ? latent.q_rank : q, 1, biased && latent.q_rank > 0);
    add({Part::kQuery}, latent.q_rank, q, 1, false);
    add({Part::kKey, Part::kValue}, h, latent.kv_rank + latent.rope_dim, 1, biased);
    add({Part::kKey, Part::kValue}, latent.kv_rank, up, 1, false);
  } else if (block.mixer == MixerKind::kAttention && block.fused_qkv) {
    add({Part::kQuery, Part::kKey, Part::kValue}, h, q + 2 * kv, 1, biased);
  } else if (block.mixer == MixerKind::kAttention) {
    const bool has_keys = attention.key_values != KeyValueSource::kEarlierLayer;
    const bool has_values = attention.key_values == KeyValueSource::kProjected;
    add({Part::kQuery}, h, q, 1, biased);
    add({Part::kKey}, h, has_keys ? kv : 0, 1, biased);
    add({Part::kValue}, h, has_values ? attention.kv_heads * value_dim(attention) : 0, 1, biased);
  }
  if (block.mixer == MixerKind::kAttention) {
    add({Part::kOutput}, attention_width(block), h, 1, has_output_bias(block));
  }
  const auto feed_forward = [&](std::int64_t width, std::int64_t ffn, std::int64_t count,
                                bool has_bias) {
    if (is_gated(block.mlp)) add({Part::kGate}, width, ffn, count, has_bias);
    add({Part::kUp}, width, ffn, count, has_bias);
    add({Part::kDown}, ffn, width, count, has_bias);
  };
  if (has_experts(block)) {
    feed_forward(expert_width(block), block.ffn_hidden, experts, block.experts.bias);
    feed_forward(h, block.experts.shared_ffn, 1, false);
    add({Part::kRouter}, h, block.experts.count, 1, block.experts.router.bias);
  } else {
    feed_forward(h, block.ffn_hidden, 1, has_mlp_bias(block));
  }
}

// Sum of the inputs and outputs of the layers with adapters in one block.
std::int64_t adapted_widths(const ModelSpec& block, const Finetune& finetune,
                            std::int64_t experts) {
  std::int64_t sum = 0;
  if ((block.trained & part_bit(Part::kAdapters)) == 0) return sum;
  for_each_linear(block, experts,
                  [&](std::int64_t parts, std::int64_t in, std::int64_t out, std::int64_t count,
                      bool /*has_bias*/) {
                    if (finetune.targets_any(parts)) sum += count * (in + out);
                  });
  return sum;
}

// Weights of a block: all, and those that are trained without the adapters.
struct BlockWeights {
  std::int64_t all = 0, trained = 0;
};
// Weights of the linear layers that a token uses. `all`: without those of WeightPart::kOthers.
BlockWeights multiplied_weights(const ModelSpec& block) {
  BlockWeights sum;
  for_each_linear(block, block.experts.per_token,
                  [&](std::int64_t parts, std::int64_t in, std::int64_t out, std::int64_t count,
                      bool /*has_bias*/) {
                    sum.all += count * in * out;
                    if ((block.trained & parts) != 0) sum.trained += count * in * out;
                  });
  return sum;
}
BlockWeights block_weights(const ModelSpec& block) {
  const std::int64_t norms = block_norm_parameters(block);
  std::int64_t named = norms;
  BlockWeights sum{block_parameter_count(block), 0};
  const auto trains = [&](std::int64_t parts) { return (block.trained & parts) != 0; };
  if (trains(part_bit(Part::kNorms))) sum.trained += norms;
  for_each_linear(block, block.experts.count,
                  [&](std::int64_t parts, std::int64_t in, std::int64_t out, std::int64_t count,
                      bool has_bias) {
                    const std::int64_t weights = count * out * (in + (has_bias ? 1 : 0));
                    named += weights;
                    if (trains(parts)) sum.trained += weights;
                  });
  if (trains(part_bit(Part::kOthers))) sum.trained += sum.all - named;
  return sum;
}

// Returns the bits of WeightPart that a block has.
std::int64_t parts_of(const ModelSpec& block, const Finetune& finetune) {
  std::int64_t parts = part_bit(Part::kNorms);
  for_each_linear(
      block, block.experts.count,
      [&](std::int64_t bits, std::int64_t, std::int64_t, std::int64_t, bool) { parts |= bits; });
  ModelSpec others = block;
  others.trained = part_bit(Part::kOthers);
  if (block_weights(others).trained > 0) parts |= others.trained;
  others.trained = kAllParts;
  if (adapted_widths(others, finetune, 1) > 0) parts |= part_bit(Part::kAdapters);
  return parts;
}

// Sum of of_block() over all blocks; `count` returns how often a kind counts.
template <class OfBlock>
double sum_over_blocks(const ModelSpec& model, OfBlock of_block,
                       std::int64_t (*count)(const ModelSpec&, std::int64_t)) {
  double sum = 0;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    sum += static_cast<double>(count(model, kind)) * of_block(with_block_kind(model, kind));
  }
  return sum;
}

}  // namespace

FinetuneMethod method_of(const Finetune& finetune) {
  if (!finetune.adapts) return finetune.selects ? FinetuneMethod::kFreeze : FinetuneMethod::kFull;
  return finetune.quantizes_base() ? FinetuneMethod::kQlora : FinetuneMethod::kLora;
}

void set_method(Finetune& finetune, FinetuneMethod method) {
  finetune.selects = method == FinetuneMethod::kFreeze;
  finetune.adapts = method == FinetuneMethod::kLora || method == FinetuneMethod::kQlora;
  if (method == FinetuneMethod::kQlora) {
    if (finetune.base == BaseDtype::kPlan) finetune.base = BaseDtype::kNf4;
  } else {
    finetune.base = BaseDtype::kPlan;
  }
}

// bitsandbytes/functional.py, quantize_4bit (blocksize 64, absmax in fp32, or in 8 bits with an
// fp32 scale for 256); GPTQ and AWQ with groups of 128: fp16 scale, 4-bit zero point.
double base_weight_bytes(const Finetune& finetune, DType plan) {
  if (!finetune.quantizes_base()) return static_cast<double>(size_of(plan));
  switch (finetune.base) {
    case BaseDtype::kPlan: break;
    case BaseDtype::kNf4:
      return 0.5 + (finetune.double_quantization ? 1.0 / 64 + 4.0 / (64 * 256) : 4.0 / 64);
    case BaseDtype::kInt4: return 0.5 + 2.5 / 128;
    case BaseDtype::kInt8: return 1;
  }
  return static_cast<double>(size_of(plan));
}

bool trains_table(const ModelSpec& model, const Finetune& finetune, bool is_head) {
  const std::int64_t own = part_bit(is_head ? Part::kHead : Part::kEmbedding);
  const std::int64_t both = part_bit(Part::kHead) | part_bit(Part::kEmbedding);
  return (finetune.chosen() & (model.tied_embedding ? both : own)) != 0;
}

ModelSpec trained_model(const ModelSpec& model, const Finetune& finetune) {
  bool states_all = true;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    states_all = states_all && block_of_kind(model, kind).trained == kAllParts;
  }
  if (!finetune.freezes() && states_all) return model;
  std::vector<BlockShape> blocks;
  const bool trains_norm = (finetune.chosen() & part_bit(Part::kOuterNorms)) != 0;
  bool trains_below = trains_table(model, finetune, false) || (model.embedding_norm && trains_norm);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::int64_t kind = block_kind(model, layer), from_end = model.layers - layer;
    const bool is_chosen =
        finetune.layers == 0 ||
        (finetune.layers > 0 ? from_end <= finetune.layers : layer < -finetune.layers);
    BlockShape& block = blocks.emplace_back(block_of_kind(model, kind));
    if (!finetune.freezes()) {
      block.trained = kAllParts;
      continue;
    }
    block.trained &= is_chosen ? finetune.chosen() : 0;
    block.trained &= parts_of(with_block_kind(model, kind), finetune);
    trains_below |= block.trained != 0;
    block.has_backward = trains_below;
  }
  ModelSpec trained = model;
  set_blocks(trained, blocks);
  return trained;
}

std::int64_t trained_block_count(const ModelSpec& block, const Finetune& finetune) {
  return finetune.rank * adapted_widths(block, finetune, block.experts.count) +
         block_weights(block).trained;
}

TrainedCounts trained_counts(const ModelSpec& model, const Finetune& finetune) {
  const std::int64_t all = parameter_count(model);
  if (!finetune.freezes()) return {0, all, 0};
  const ModelSpec trained = trained_model(model, finetune);
  const auto count = [&](auto of_block) {
    return static_cast<std::int64_t>(sum_over_blocks(
        trained, [&](const ModelSpec& block) { return static_cast<double>(of_block(block)); },
        weights_of_kind));
  };
  TrainedCounts counts;
  counts.adapters = finetune.rank * count([&](const ModelSpec& block) {
                      return adapted_widths(block, finetune, block.experts.count);
                    });
  std::int64_t own = count([](const ModelSpec& block) { return block_weights(block).trained; });
  const std::int64_t table = model.vocab * model.hidden, norms = outer_norm_parameters(model);
  const std::int64_t heads =
      model.tied_embedding ? 0 : table + (model.ends.head_bias ? model.vocab : 0);
  if (trains_table(model, finetune, true)) own += heads;
  if (trains_table(model, finetune, false)) own += table;
  if ((finetune.chosen() & part_bit(Part::kEmbedding)) != 0) {  // position tables, encoders
    own += all - count(block_parameter_count) - norms - heads - table;
  }
  if ((finetune.chosen() & part_bit(Part::kOuterNorms)) != 0) own += norms;
  counts.trained = counts.adapters + own;
  counts.frozen = all - own;
  return counts;
}

Flops finetune_flops_per_step(const ModelSpec& model, const Finetune& finetune,
                              std::int64_t global_batch) {
  const Flops all = model_flops_per_step(model, global_batch);
  if (!finetune.freezes()) return all;
  const ModelSpec trained = trained_model(model, finetune);
  const auto seq = static_cast<double>(model.seq);
  const double saved = sum_over_blocks(
      trained,
      [&](const ModelSpec& block) {
        const BlockFlops flops = block_forward_flops(block);
        const BlockWeights weights = multiplied_weights(block);
        const bool trains_others = (block.trained & part_bit(Part::kOthers)) != 0;
        const double named = 2.0 * seq * static_cast<double>(weights.all);
        const double updated = 2.0 * seq * static_cast<double>(weights.trained) +
                               (trains_others ? flops.products() - named : 0);
        const double backward = 2 * flops.total() - flops.products();
        const double adapters =
            6.0 * seq * static_cast<double>(finetune.rank) *
            static_cast<double>(adapted_widths(block, finetune, block.experts.per_token));
        return flops.products() - updated - adapters + (block.has_backward ? 0 : backward);
      },
      blocks_of_kind);
  const auto heads = static_cast<double>(1 + model.ends.prediction_layers);
  const double logits = 2.0 * seq * heads * static_cast<double>(model.hidden * model.vocab);
  return all - Flops(static_cast<double>(global_batch) *
                     (saved + (trains_table(model, finetune, true) ? 0 : logits)));
}

std::string_view unadapted_part(const ModelSpec& model) {
  if (has_recurrences(model)) return "recurrent layers";
  if (has_planned_ops(model)) return "ops that tpsim only predicts";
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const BlockShape block = block_of_kind(model, kind);
    if (block.attention.latent.kv_rank > 0) return "latent attention";
    if (block.attention.output_gate) return "gated attention outputs";
  }
  return "";
}

}  // namespace tpsim
