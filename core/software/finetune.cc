#include "core/software/finetune.h"

#include <initializer_list>

namespace tpsim {
namespace {

using Target = AdapterTarget;

// Sum of the inputs and outputs of the layers with adapters in one block, where a token uses
// `experts` experts.
std::int64_t adapted_widths(const ModelSpec& block, const Finetune& finetune,
                            std::int64_t experts) {
  std::int64_t sum = 0;
  const auto add = [&](std::initializer_list<Target> targets, std::int64_t in, std::int64_t out,
                       std::int64_t count) {
    std::int64_t bits = 0;
    for (const Target target : targets) bits |= adapter_bit(target);
    if (finetune.targets_any(bits) && out > 0) sum += count * (in + out);
  };
  if (block.mixer == MixerKind::kAttention) {
    const std::int64_t q = query_width(block), kv = kv_width(block);
    if (block.fused_qkv) {
      add({Target::kQuery, Target::kKey, Target::kValue}, block.hidden, q + 2 * kv, 1);
    } else {
      const bool has_keys = block.attention.key_values != KeyValueSource::kEarlierLayer;
      const bool has_values = block.attention.key_values == KeyValueSource::kProjected;
      add({Target::kQuery}, block.hidden, q, 1);
      add({Target::kKey}, block.hidden, has_keys ? kv : 0, 1);
      add({Target::kValue}, block.hidden,
          has_values ? block.attention.kv_heads * value_dim(block.attention) : 0, 1);
    }
    add({Target::kOutput}, attention_width(block), block.hidden, 1);
  }
  const auto feed_forward = [&](std::int64_t width, std::int64_t ffn, std::int64_t count) {
    if (ffn == 0) return;
    if (is_gated(block.mlp)) add({Target::kGate}, width, ffn, count);
    add({Target::kUp}, width, ffn, count);
    add({Target::kDown}, ffn, width, count);
  };
  if (has_experts(block)) {
    feed_forward(expert_width(block), block.ffn_hidden, experts);
    feed_forward(block.hidden, block.experts.shared_ffn, 1);
  } else {
    feed_forward(block.hidden, block.ffn_hidden, 1);
  }
  return sum;
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
  if (!finetune.adapts) return FinetuneMethod::kFull;
  return finetune.quantizes_base() ? FinetuneMethod::kQlora : FinetuneMethod::kLora;
}

void set_method(Finetune& finetune, FinetuneMethod method) {
  finetune.adapts = method != FinetuneMethod::kFull;
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

TrainedCounts trained_counts(const ModelSpec& model, const Finetune& finetune) {
  const std::int64_t all = parameter_count(model);
  if (!finetune.adapts) return {0, all, 0};
  TrainedCounts counts;
  counts.adapters = finetune.rank * static_cast<std::int64_t>(sum_over_blocks(
                                        model,
                                        [&](const ModelSpec& block) {
                                          return static_cast<double>(
                                              adapted_widths(block, finetune, block.experts.count));
                                        },
                                        weights_of_kind));
  std::int64_t others = 0;
  if (finetune.trains(TrainedPart::kEmbedding)) {
    others += (model.tied_embedding ? 1 : 2) * model.vocab * model.hidden;
  }
  if (finetune.trains(TrainedPart::kNorms)) others += norm_parameter_count(model);
  counts.trained = counts.adapters + others;
  counts.frozen = all - others;
  return counts;
}

Flops finetune_flops_per_step(const ModelSpec& model, const Finetune& finetune,
                              std::int64_t global_batch) {
  const Flops all = model_flops_per_step(model, global_batch);
  if (!finetune.adapts) return all;
  const auto tokens = static_cast<double>(global_batch * model.seq);
  const double frozen = sum_over_blocks(
      model, [](const ModelSpec& block) { return block_forward_flops(block).products(); },
      blocks_of_kind);
  const double adapters = sum_over_blocks(
      model,
      [&](const ModelSpec& block) {
        return static_cast<double>(adapted_widths(block, finetune, block.experts.per_token));
      },
      blocks_of_kind);
  const auto heads = static_cast<double>(1 + model.ends.prediction_layers);
  const double logits = 2.0 * tokens * heads * static_cast<double>(model.hidden * model.vocab);
  return all -
         Flops(static_cast<double>(global_batch) * frozen +
               (finetune.trains(TrainedPart::kEmbedding) ? 0 : logits)) +
         Flops(6.0 * tokens * static_cast<double>(finetune.rank) * adapters);
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
