#include "core/model/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

namespace tpsim {
namespace {

// All weights, some twice, in a type that no file overflows.
double weights_at_most(const ModelSpec& model) {
  const auto times = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  double widest = 0;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const BlockShape block = block_of_kind(model, kind);
    const double heads = times(block.attention.heads + 2 * block.attention.kv_heads, 2);
    const RecurrentShape& r = block.recurrent;
    const double recurrent = 4 * (times(r.heads, r.value_dim) + times(r.key_heads, r.key_dim)) *
                             static_cast<double>(model.hidden);
    const double attention =
        std::max(recurrent, heads * times(block.attention.head_dim, model.hidden));
    const double mlp = 3 * times(model.hidden, block.ffn_hidden) *
                       static_cast<double>(std::max<std::int64_t>(1, block.experts.count));
    widest = std::max(widest, attention + mlp);
  }
  const double words = 2 * times(model.vocab + model.vocab_multiple + model.seq, model.hidden);
  // A prediction layer has two blocks at most.
  const auto blocks =
      static_cast<double>(model.layers) + 2 * static_cast<double>(model.ends.prediction_layers);
  return blocks * widest + words;
}

Status check_counts(const ExpertShape& experts) {
  const auto each = static_cast<std::size_t>(experts.count);
  const std::vector<double>& counts = experts.counts;
  if (counts.size() % each != 0) {
    return bad_input(
        fmt::format("{} counts of tokens for {} experts", counts.size(), experts.count), "",
        "experts.measured.counts needs one count per expert, for one layer or several");
  }
  for (std::size_t block = 0; block < counts.size() / each; ++block) {
    const auto first = counts.begin() + static_cast<std::ptrdiff_t>(block * each);
    if (std::accumulate(first, first + experts.count, 0.0) > 0) continue;
    return bad_input(fmt::format("no expert of layer {} of the counts got a token", block + 1));
  }
  return Ok{};
}

Status check_experts(const ModelSpec& model) {
  const ExpertShape& experts = model.experts;
  const auto bad = [](std::string message, std::string hint) {
    return bad_input(std::move(message), "", std::move(hint));
  };
  if (experts.per_token < 1 || experts.per_token > experts.count) {
    return bad(fmt::format("{} of {} experts for a token", experts.per_token, experts.count),
               fmt::format("experts.per_token must be between 1 and {}", experts.count));
  }
  if (!(experts.capacity_factor > 0)) {
    return bad(fmt::format("experts.capacity_factor is {}", experts.capacity_factor),
               "it must be above 0; 1 suffices for balanced experts");
  }
  if (model.linear_bias) {
    return bad("experts with biases are not modelled", "set linear_bias to false");
  }
  if (experts.latent > 0 && experts.router.scales_input) {
    return bad("experts of a latent whose input is scaled are not modelled", "set latent to 0");
  }
  TPSIM_TRY_STATUS(check_counts(experts));
  const RouterShape& router = experts.router;
  if (router.groups < 1 || experts.count % router.groups != 0 || router.groups_kept < 1 ||
      router.groups_kept > router.groups) {
    return bad(fmt::format("{} experts in {} groups with {} groups per token", experts.count,
                           router.groups, router.groups_kept),
               "the number of groups must divide the experts, and at least one group must be kept");
  }
  if (router.groups_kept * (experts.count / router.groups) < experts.per_token) {
    return bad(fmt::format("{} groups of {} experts have fewer than {} experts per token",
                           router.groups_kept, experts.count / router.groups, experts.per_token),
               "");
  }
  return Ok{};
}

}  // namespace

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
  std::vector<std::pair<BlockShape, std::int64_t>> kinds;  // with how many layers have them
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

std::int64_t recurrent_values(const RecurrentShape& recurrent) {
  return recurrent.heads * recurrent.value_dim;
}

std::int64_t recurrent_channels(const RecurrentShape& recurrent) {
  return recurrent_values(recurrent) + 2 * recurrent.key_heads * recurrent.key_dim;
}

// Mamba-2 has a step of each head, a delta net a rate of decay and one of writing.
std::int64_t recurrent_inputs(const ModelSpec& model) {
  const RecurrentShape& r = model.recurrent;
  const std::int64_t rates = model.mixer == MixerKind::kMamba2 ? r.heads : 2 * r.heads;
  return recurrent_values(r) + recurrent_channels(r) + rates;
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

std::int64_t attention_width(const ModelSpec& model) {
  const LatentShape& latent = model.attention.latent;
  return latent.kv_rank > 0 ? model.attention.heads * latent.value_dim : query_width(model);
}

std::int64_t position_rows(const ModelSpec& model) {
  return std::max(model.ends.positions, model.seq);
}

std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp) {
  const std::int64_t multiple = model.vocab_multiple * tp;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24, kMostHeads = 1 << 16;

Status check_sizes(std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  for (const auto& [name, size] : sizes) {
    const bool counts_heads = std::string_view(name).ends_with("heads");
    const std::int64_t most = counts_heads ? kMostHeads : kLargest;
    if (size < 1 || size > most) {
      return bad_input(fmt::format("{} is {}; it must be between 1 and {}", name, size, most));
    }
  }
  return Ok{};
}

Status check_attention(const ModelSpec& model) {
  const AttentionShape& attention = model.attention;
  TPSIM_TRY_STATUS(check_sizes({{"heads", attention.heads},
                                {"kv_heads", attention.kv_heads},
                                {"head_dim", attention.head_dim}}));
  const auto bad = [](std::string message, std::string hint = "") {
    return bad_input(std::move(message), "", std::move(hint));
  };
  if (attention.heads % attention.kv_heads != 0) {
    return bad(fmt::format("{} heads cannot share {} kv_heads evenly", attention.heads,
                           attention.kv_heads),
               "heads must be a multiple of kv_heads");
  }
  if (model.fused_qkv && attention.kv_heads != attention.heads) {
    return bad(fmt::format("fused_qkv keeps q, k and v of each head together: {} heads cannot "
                           "share {} kv_heads",
                           attention.heads, attention.kv_heads),
               "set fused_qkv to false, or kv_heads to heads");
  }
  if (attention.position == PositionKind::kRotary && attention.head_dim % 2 != 0) {
    return bad(fmt::format("rotary embedding needs an even head_dim, not {}", attention.head_dim));
  }
  if (attention.window > 0 && attention.chunk > 0) {
    return bad("attention has a window or chunks, not both");
  }
  const LatentShape& latent = attention.latent;
  if (latent.kv_rank > 0 && latent.nope_dim + latent.rope_dim != attention.head_dim) {
    return bad(fmt::format("head_dim is {}; latent attention has nope_dim + rope_dim = {} + {}",
                           attention.head_dim, latent.nope_dim, latent.rope_dim));
  }
  return Ok{};
}

Status check_recurrence(const RecurrentShape& r) {
  TPSIM_TRY_STATUS(check_sizes({{"recurrent.heads", r.heads},
                                {"recurrent.key_heads", r.key_heads},
                                {"recurrent.key_dim", r.key_dim},
                                {"recurrent.value_dim", r.value_dim},
                                {"recurrent.chunk", r.chunk}}));
  if (r.heads % r.key_heads == 0) return Ok{};
  return bad_input(
      fmt::format("{} heads of a recurrence cannot share {} of keys evenly", r.heads, r.key_heads),
      "", "recurrent.heads must be a multiple of recurrent.key_heads");
}

Status check_block(const ModelSpec& model) {
  if (model.mixer == MixerKind::kAttention) TPSIM_TRY_STATUS(check_attention(model));
  if (is_recurrent(model)) TPSIM_TRY_STATUS(check_recurrence(model.recurrent));
  if (has_experts(model)) TPSIM_TRY_STATUS(check_experts(model));
  return Ok{};
}

}  // namespace

Status validate(const ModelSpec& model) {
  TPSIM_TRY_STATUS(check_sizes({{"layers", model.layers},
                                {"hidden", model.hidden},
                                {"vocab", model.vocab},
                                {"seq", model.seq}}));
  if (model.other_blocks.empty() && model.mixer == MixerKind::kAttention) {
    TPSIM_TRY_STATUS(check_sizes({{"ffn_hidden", model.ffn_hidden}}));
  }
  if (!model.block_kinds.empty() &&
      static_cast<std::int64_t>(model.block_kinds.size()) != model.layers) {
    return bad_input(fmt::format("block_kinds names {} layers, the model has {}",
                                 model.block_kinds.size(), model.layers));
  }
  for (const std::int64_t kind : model.block_kinds) {
    if (kind < 0 || kind >= block_kind_count(model)) {
      return bad_input(fmt::format("block_kinds holds {}; there are {} kinds of blocks, from 0",
                                   kind, block_kind_count(model)));
    }
  }
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    TPSIM_TRY_STATUS(check_block(with_block_kind(model, kind)));
  }
  // Numbers of weights, and what is made of them, are whole numbers of 64 bits.
  constexpr double kMostWeights = 1e15;
  if (!(weights_at_most(model) <= kMostWeights)) {
    return bad_input(fmt::format("its sizes give about {:.0e} weights; the limit is {:.0e}",
                                 weights_at_most(model), kMostWeights));
  }
  return Ok{};
}

}  // namespace tpsim
