#include "core/software/launched_models.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"

namespace tpsim {
namespace {

// Values of model_type for which Megatron-Bridge registers a bridge, and those of the text models
// inside multimodal models.
constexpr std::string_view kBridgeFamilies =
    "bailing_moe_v2 deepseek_v2 deepseek_v3 deepseek_v4 ernie4_5_moe exaone4 exaone_moe falcon_h1 "
    "gemma gemma2 gemma3_text gemma4_text glm4_moe glm4_moe_lite glm_moe_dsa gpt_oss hy_v3 kimi_k2 "
    "kimi_linear llama mimo mimo_v2_flash minimax_m2 minimax_m3 mistral nemotron nemotron-nas "
    "nemotron_h olmoe qwen2 qwen3 qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next "
    "qwen3_vl_moe_text qwen3_vl_text step3p5 step3p7";

// Values of model_type for which torchtitan has modules of their own, besides those of
// is_titan_block().
constexpr std::string_view kTitanFamilies =
    "gpt_oss llama4_text qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text";

// Whether torchtitan's GQAttention or its latent attention, and its FeedForward or MoE, express the
// block. A norm of q and k is one per head, as in Qwen3.
bool is_titan_block(const BlockShape& block) {
  if (block.mixer != MixerKind::kAttention || !block.planned.empty()) return false;
  AttentionShape plain;
  plain.heads = block.attention.heads;
  plain.kv_heads = block.attention.kv_heads;
  plain.head_dim = block.attention.head_dim;
  plain.rope_theta = block.attention.rope_theta;
  plain.position = PositionKind::kRotary;
  plain.rotary.stretch = block.attention.rotary.stretch;  // has no effect on time or memory
  if (block.attention.qk_norm == QkNorm::kHead) plain.qk_norm = QkNorm::kHead;
  plain.latent = block.attention.latent;
  if (plain.latent.kv_rank > 0) {  // rotates pairs, with YaRN's scale
    plain.rotary.neighbours = block.attention.rotary.neighbours;
    plain.score.scale = block.attention.score.scale;
  }
  const ExpertShape& experts = block.experts;
  return block.attention == plain && block.ffn_hidden > 0 && experts.latent == 0 && !experts.bias &&
         !experts.router.bias && !experts.router.scales_input;
}

bool is_feed_forward(const BlockShape& block) { return block.ffn_hidden > 0; }

// Whether `field` has the same value in all blocks for which `has` is true.
template <class Has, class Field>
bool agree(const std::vector<BlockShape>& blocks, Has has, Field field) {
  const auto first = std::find_if(blocks.begin(), blocks.end(), has);
  return std::all_of(blocks.begin(), blocks.end(), [&](const BlockShape& block) {
    return !has(block) || field(block) == field(*first);
  });
}

ExpertShape without_counts(ExpertShape experts) {
  experts.counts.clear();
  return experts;
}

bool agree_in_feed_forward(const std::vector<BlockShape>& blocks) {
  const auto is_dense = [](const BlockShape& b) {
    return is_feed_forward(b) && b.experts.count == 0;
  };
  const auto is_mixture = [](const BlockShape& b) { return b.experts.count > 0; };
  return agree(blocks, is_dense, [](const BlockShape& b) { return b.ffn_hidden; }) &&
         agree(blocks, is_mixture, [](const BlockShape& b) { return b.ffn_hidden; }) &&
         agree(blocks, is_mixture, [](const BlockShape& b) { return without_counts(b.experts); });
}

bool has_indexer(const BlockShape& block) { return !block.planned.empty(); }

bool is_of(const BlockShape& block, MixerKind mixer) { return block.mixer == mixer; }

bool agree_in_mixers(const std::vector<BlockShape>& blocks) {
  const auto attends = [](const BlockShape& b) { return is_of(b, MixerKind::kAttention); };
  const auto recurs = [](const BlockShape& b) {
    return is_of(b, MixerKind::kMamba2) || is_of(b, MixerKind::kDeltaNet);
  };
  std::vector<std::int64_t> windows;
  for (const BlockShape& block : blocks) {
    if (attends(block) && block.attention.window > 0) windows.push_back(block.attention.window);
  }
  const auto unlimited = [](const BlockShape& b) {
    AttentionShape attention = b.attention;
    attention.window = 0;
    return attention;
  };
  return agree(blocks, attends, unlimited) &&
         agree(blocks, recurs, [](const BlockShape& b) { return b.recurrent; }) &&
         std::adjacent_find(windows.begin(), windows.end(), std::not_equal_to<>()) == windows.end();
}

}  // namespace

std::vector<BlockShape> block_shapes(const ModelSpec& model) {
  std::vector<BlockShape> blocks;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    blocks.push_back(block_of_kind(model, kind));
  }
  return blocks;
}

char layer_letter(const BlockShape& block) {
  switch (block.mixer) {
    case MixerKind::kMamba2: return 'M';
    case MixerKind::kDeltaNet: return 'G';
    case MixerKind::kAttention: return '*';
    case MixerKind::kNone:
    case MixerKind::kPlanned: break;
  }
  return block.experts.count > 0 ? 'E' : '-';
}

const AttentionShape& attention_shape(const ModelSpec& model) {
  if (model.mixer == MixerKind::kAttention) return model.attention;
  for (const BlockShape& block : model.other_blocks) {
    if (block.mixer == MixerKind::kAttention) return block.attention;
  }
  return model.attention;
}

bool has_plain_attention(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  AttentionShape plain;
  plain.heads = attention.heads;
  plain.kv_heads = attention.kv_heads;
  plain.head_dim = attention.head_dim;
  plain.position = attention.position;
  plain.rope_theta = attention.rope_theta;
  plain.rotary.stretch = attention.rotary.stretch;  // has no effect on time or memory
  return attention == plain;
}

// --qk-layernorm adds a norm per head before the rotary embedding. has_megatron_biases() checks the
// biases.
bool has_megatron_attention(const ModelSpec& model) {
  ModelSpec other = model;
  other.mixer = MixerKind::kAttention;
  other.attention = attention_shape(model);
  AttentionShape& attention = other.attention;
  if (attention.qk_norm == QkNorm::kHead) attention.qk_norm = QkNorm::kNone;
  attention.qkv_bias = attention.output_bias = false;
  attention.rotary.fraction = 1;       // --rotary-percent
  attention.window = 0;                // --window-size, --window-attn-skip-freq
  attention.score.sinks = false;       // --softmax-type learnable
  attention.output_gate = false;       // --attention-output-gate
  attention.chosen = 0;                // --dsa-indexer-topk, see has_megatron_parts()
  if (attention.latent.kv_rank > 0) {  // Megatron's MLA always rotates pairs, with YaRN's scale
    attention.rotary.neighbours = false;
    attention.score.scale = 0;
  }
  attention.latent = {};
  return has_plain_attention(other);
}

// Megatron-LM always normalizes sigmoid weights, and has a router bias only if all linear layers
// have biases.
bool has_megatron_router(const ModelSpec& model) {
  const RouterShape& router = model.experts.router;
  const bool sigmoid = router.score == RouterScore::kSigmoid;
  return !router.scales_input && (!router.bias || has_all_biases(model)) &&
         (model.experts.latent == 0 || is_hybrid_pattern(model)) &&
         (!sigmoid || router.renormalises || model.experts.per_token == 1);
}

bool has_megatron_activation(const ModelSpec& model) {
  return model.mlp == MlpKind::kSwiglu || model.mlp == MlpKind::kGelu ||
         model.mlp == MlpKind::kReluSquared || model.mlp == MlpKind::kClampedSwiglu;
}

bool is_hybrid_pattern(const ModelSpec& model) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  const bool has_one_branch =
      std::all_of(blocks.begin(), blocks.end(), [](const BlockShape& block) {
        const bool mixes = block.mixer != MixerKind::kNone;
        return block.mixer != MixerKind::kPlanned && mixes != is_feed_forward(block);
      });
  return has_one_branch && blocks.size() > 1;
}

bool has_megatron_layers(const ModelSpec& model) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  if (!agree_in_feed_forward(blocks) || !agree_in_mixers(blocks)) return false;
  if (is_hybrid_pattern(model)) return true;
  return std::all_of(blocks.begin(), blocks.end(), [](const BlockShape& block) {
    const bool mixes = is_of(block, MixerKind::kAttention) || is_of(block, MixerKind::kDeltaNet);
    return mixes && is_feed_forward(block);
  });
}

bool is_heterogeneous(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  const bool is_llama = model.norm == NormKind::kRmsNorm && model.mlp == MlpKind::kSwiglu &&
                        attention.position == PositionKind::kRotary &&
                        attention.rotary.stretch.kind == RotaryScaling::kLlama3 &&
                        attention.kv_heads < attention.heads && !model.other_blocks.empty();
  const std::vector<BlockShape> blocks = block_shapes(model);
  return is_llama && std::all_of(blocks.begin(), blocks.end(), [&](const BlockShape& block) {
           const bool attends = is_of(block, MixerKind::kAttention) && block.attention == attention;
           return (attends || is_of(block, MixerKind::kNone)) && block.experts.count == 0 &&
                  block.planned.empty();
         });
}

bool has_all_biases(const ModelSpec& model) {
  if (model.linear_bias) return true;
  const AttentionShape& attention = attention_shape(model);
  const bool fed = has_experts(model) ? model.experts.bias : model.mlp_bias;
  return attention.qkv_bias && attention.output_bias && fed;
}

bool has_megatron_biases(const ModelSpec& model) {
  if (has_all_biases(model)) return true;
  return !attention_shape(model).output_bias && !model.mlp_bias && !model.experts.bias;
}

bool is_encoder(const OuterPart& part) { return part.patches > 0; }

bool has_encoders(const ModelSpec& model) {
  return std::any_of(model.ends.parts.begin(), model.ends.parts.end(), is_encoder);
}

bool has_megatron_parts(const ModelSpec& model) {
  const std::vector<OuterPart>& parts = model.ends.parts;
  const bool are_encoders = std::all_of(parts.begin(), parts.end(), is_encoder);
  if (model.ends.streams > 1 || !are_encoders) return false;
  const std::vector<BlockShape> blocks = block_shapes(model);
  const bool are_indexers = std::all_of(blocks.begin(), blocks.end(), [](const BlockShape& block) {
    return std::all_of(block.planned.begin(), block.planned.end(),
                       [](const PlannedOp& op) { return op.name.starts_with("indexer."); });
  });
  return are_indexers &&
         agree(blocks, has_indexer, [](const BlockShape& block) { return block.planned; }) &&
         indexed_layers(model).has_value();
}

std::optional<IndexedLayers> indexed_layers(const ModelSpec& model) {
  std::vector<std::int64_t> indexed;  // layers with an indexer, from 1
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (has_indexer(block_of_kind(model, block_kind(model, layer)))) indexed.push_back(layer + 1);
  }
  IndexedLayers found;
  const auto count = static_cast<std::int64_t>(indexed.size());
  if (count == 0 || count == model.layers) return found;
  // The first layers all have indexers, then every `frequency`-th layer has one.
  std::int64_t first = 0;
  while (first < count && indexed[static_cast<std::size_t>(first)] == first + 1) ++first;
  if (first == 0) return std::nullopt;
  found.offset = first;
  found.frequency = first < count ? indexed[static_cast<std::size_t>(first)] - first : model.layers;
  for (std::int64_t layer = 1; layer <= model.layers; ++layer) {
    const bool has = std::binary_search(indexed.begin(), indexed.end(), layer);
    if (has == shares_indices(found, layer)) return std::nullopt;
  }
  return found;
}

bool shares_indices(const IndexedLayers& layers, std::int64_t layer) {
  return std::max<std::int64_t>(layer - layers.offset, 0) % layers.frequency != 0;
}

bool has_plain_ends(const ModelSpec& model) {
  const EndShape& ends = model.ends;
  return ends.embedding_scale == 1 && ends.logit_scale == 1 && ends.logit_cap == 0 &&
         !ends.head_bias;
}

bool has_megatron_shape(const ModelSpec& model) {
  return has_megatron_parts(model) && has_megatron_layers(model) &&
         model.norm_place == NormPlace::kBefore && has_megatron_activation(model) &&
         has_megatron_attention(model) && has_megatron_biases(model) &&
         has_megatron_router(model) && has_plain_ends(model);
}

bool has_bridge_options(const ModelSpec& model) {
  ModelSpec other = model;
  if (other.mlp == MlpKind::kRelu) other.mlp = MlpKind::kGelu;
  return other.ends.parts.empty() && has_megatron_shape(other);
}

bool has_llama_blocks(const ModelSpec& model) {
  return model.attention.position == PositionKind::kRotary && model.norm == NormKind::kRmsNorm &&
         model.mlp == MlpKind::kSwiglu && !model.linear_bias && !model.embedding_norm &&
         !model.residual_from_after_norm;
}

bool has_titan_layers(const ModelSpec& model) {
  if (matches_any(model.family, kTitanFamilies)) return true;
  const bool is_common = model.norm == NormKind::kRmsNorm && model.mlp == MlpKind::kSwiglu &&
                         model.norm_place == NormPlace::kBefore && !model.norm_plus_one &&
                         !model.linear_bias && !model.mlp_bias && !model.embedding_norm &&
                         !model.residual_from_after_norm && model.ends.streams == 1 &&
                         model.ends.parts.empty() && has_plain_ends(model);
  const std::vector<BlockShape> blocks = block_shapes(model);
  return is_common && std::all_of(blocks.begin(), blocks.end(), is_titan_block);
}

bool has_bridge(const ModelSpec& model) {
  return !model.family.empty() && model.family.find_first_of(" *") == std::string::npos &&
         matches_any(model.family, kBridgeFamilies);
}

}  // namespace tpsim
