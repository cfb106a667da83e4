#include "core/model/model_spec.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace tpsim {

std::int64_t expert_capacity(const ExpertShape& experts, std::int64_t tokens) {
  const double even =
      static_cast<double>(tokens * experts.per_token) / static_cast<double>(experts.count);
  const auto capacity = static_cast<std::int64_t>(std::ceil(experts.capacity_factor * even));
  return std::clamp<std::int64_t>(capacity, 1, tokens);
}

std::int64_t block_kind_count(const ModelSpec& model) {
  return 1 + static_cast<std::int64_t>(model.other_blocks.size());
}

std::int64_t block_kind(const ModelSpec& model, std::int64_t layer) {
  return model.block_kinds.empty() ? 0 : model.block_kinds[static_cast<std::size_t>(layer)];
}

std::int64_t layers_of_kind(const ModelSpec& model, std::int64_t kind) {
  if (model.block_kinds.empty()) return kind == 0 ? model.layers : 0;
  return std::count(model.block_kinds.begin(), model.block_kinds.end(), kind);
}

std::int64_t blocks_of_kind(const ModelSpec& model, std::int64_t kind) {
  std::int64_t blocks = layers_of_kind(model, kind);
  if (model.ends.prediction_layers == 0) return blocks;
  for (const std::int64_t predicting : prediction_kinds(model)) {
    if (predicting == kind) blocks += model.ends.prediction_layers;
  }
  return blocks;
}

std::int64_t prediction_weights(const ModelSpec& model) {
  const std::int64_t layers = model.ends.prediction_layers;
  return model.ends.prediction_shared ? std::min<std::int64_t>(1, layers) : layers;
}

std::int64_t weights_of_kind(const ModelSpec& model, std::int64_t kind) {
  ModelSpec stored = model;
  stored.ends.prediction_layers = prediction_weights(model);
  return blocks_of_kind(stored, kind);
}

BlockShape block_of_kind(const ModelSpec& model, std::int64_t kind) {
  if (kind > 0) return model.other_blocks[static_cast<std::size_t>(kind - 1)];
  return model;
}

ModelSpec with_block_kind(const ModelSpec& model, std::int64_t kind) {
  ModelSpec alike = model;
  static_cast<BlockShape&>(alike) = block_of_kind(model, kind);
  alike.other_blocks.clear();
  alike.block_kinds.clear();
  return alike;
}

void set_blocks(ModelSpec& model, const std::vector<BlockShape>& layers) {
  std::vector<std::pair<BlockShape, std::int64_t>> kinds;  // with the number of their layers
  for (const BlockShape& layer : layers) {
    auto found = std::find_if(kinds.begin(), kinds.end(),
                              [&](const auto& kind) { return kind.first == layer; });
    if (found == kinds.end()) found = kinds.insert(kinds.end(), {layer, 0});
    ++found->second;
  }
  const auto before = [](const auto& a, const auto& b) {
    const auto rank = [](const auto& kind) {
      return std::tuple(kind.first.experts.count > 0, kind.first.mixer == MixerKind::kAttention,
                        kind.second);
    };
    return rank(a) > rank(b);
  };
  std::stable_sort(kinds.begin(), kinds.end(), before);
  model.other_blocks.clear();
  model.block_kinds.clear();
  if (kinds.empty()) return;
  static_cast<BlockShape&>(model) = kinds[0].first;
  if (kinds.size() == 1) return;
  for (std::size_t i = 1; i < kinds.size(); ++i) model.other_blocks.push_back(kinds[i].first);
  for (const BlockShape& layer : layers) {
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == layer; });
    model.block_kinds.push_back(found - kinds.begin());
  }
}

bool has_recurrences(const ModelSpec& model) {
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    if (is_recurrent(with_block_kind(model, kind))) return true;
  }
  return false;
}

bool needs_whole_sequences(const ModelSpec& model) {
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    if (takes_whole_sequences(with_block_kind(model, kind))) return true;
  }
  return false;
}

bool has_planned_ops(const ModelSpec& model) {
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    if (!block_of_kind(model, kind).planned.empty()) return true;
  }
  return !model.ends.parts.empty();
}

std::int64_t recurrent_values(const RecurrentShape& recurrent) {
  return recurrent.heads * recurrent.value_dim;
}

std::int64_t recurrent_channels(const RecurrentShape& recurrent) {
  return recurrent_values(recurrent) + 2 * recurrent.key_heads * recurrent.key_dim;
}

// Mamba-2 has one step size per head; a delta net one write strength per head and usually one decay
// per head.
std::int64_t recurrent_rates(const ModelSpec& model) {
  const bool is_mamba = model.mixer == MixerKind::kMamba2;
  return is_mamba || model.recurrent.channel_decay ? model.recurrent.heads
                                                   : 2 * model.recurrent.heads;
}

std::int64_t recurrent_inputs(const ModelSpec& model) {
  const RecurrentShape& r = model.recurrent;
  const std::int64_t gate = r.wide_gate ? recurrent_values(r) : 0;
  return gate + recurrent_channels(r) + recurrent_rates(model);
}

std::vector<std::int64_t> prediction_kinds(const ModelSpec& model) {
  const std::int64_t last = block_kind(model, model.layers - 1);
  if (block_of_kind(model, last).mixer != MixerKind::kNone) return {last};
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const BlockShape block = block_of_kind(model, kind);
    const bool attends_alone = block.mixer == MixerKind::kAttention && block.ffn_hidden == 0;
    if (attends_alone) return {kind, last};
  }
  return {last};
}

bool has_qkv_bias(const ModelSpec& model) { return model.linear_bias || model.attention.qkv_bias; }
bool has_output_bias(const ModelSpec& model) {
  return model.linear_bias || model.attention.output_bias;
}
bool has_mlp_bias(const ModelSpec& model) { return model.linear_bias || model.mlp_bias; }

std::int64_t query_width(const ModelSpec& model) {
  return model.attention.heads * model.attention.head_dim;
}

std::int64_t kv_width(const ModelSpec& model) {
  return model.attention.kv_heads * model.attention.head_dim;
}

std::int64_t value_dim(const AttentionShape& attention) {
  if (attention.latent.kv_rank > 0) return attention.latent.value_dim;
  return attention.value_dim > 0 ? attention.value_dim : attention.head_dim;
}

std::int64_t attention_width(const ModelSpec& model) {
  return model.attention.heads * value_dim(model.attention);
}

std::int64_t projected_kv_width(const ModelSpec& model) {
  const AttentionShape& attention = model.attention;
  switch (attention.key_values) {
    case KeyValueSource::kProjected: break;
    case KeyValueSource::kSameMatrix: return kv_width(model);
    case KeyValueSource::kEarlierLayer: return 0;
  }
  return attention.kv_heads * (attention.head_dim + value_dim(attention));
}

std::int64_t reach(const AttentionShape& attention) {
  if (attention.chosen < 1) return attention.window;
  return attention.window > 0 ? std::min(attention.window, attention.chosen) : attention.chosen;
}

std::int64_t position_rows(const ModelSpec& model) {
  return std::max(model.ends.positions, model.seq);
}

std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp) {
  const std::int64_t multiple = model.vocab_multiple * tp;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

}  // namespace tpsim
