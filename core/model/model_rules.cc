// Checks of validate(): whether a model is usable.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/model/model_spec.h"

namespace tpsim {
namespace {

// Returns an upper bound of the number of weights, as a double, which cannot overflow.
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
    double planned = 0;
    for (const PlannedOp& op : block.planned) {
      planned += times(op.width, op.columns) + static_cast<double>(op.parameters);
    }
    widest = std::max(widest, attention + mlp + planned);
  }
  double parts = 0;
  for (const OuterPart& part : model.ends.parts) {
    for (const auto* ops : {&part.layer_ops, &part.ops}) {
      for (const PlannedOp& op : *ops) {
        const double weights = times(op.width, op.columns) + static_cast<double>(op.parameters);
        parts += static_cast<double>(std::max<std::int64_t>(1, part.layers)) * weights;
      }
    }
  }
  const double words = 2 * times(model.vocab + model.vocab_multiple + model.seq, model.hidden);
  // An MTP layer has at most two blocks.
  const auto blocks =
      static_cast<double>(model.layers) + 2 * static_cast<double>(model.ends.prediction_layers);
  return blocks * widest + words + parts;
}

Status check_counts(const ExpertShape& experts) {
  const auto each = static_cast<std::size_t>(experts.count);
  const std::vector<double>& counts = experts.counts;
  if (counts.size() % each != 0) {
    return bad_input(fmt::format("experts.measured.counts has {} counts for {} experts",
                                 counts.size(), experts.count),
                     "", "give one count per expert, for one layer or several");
  }
  for (std::size_t block = 0; block < counts.size() / each; ++block) {
    const auto first = counts.begin() + static_cast<std::ptrdiff_t>(block * each);
    if (std::accumulate(first, first + experts.count, 0.0) > 0) continue;
    return bad_input(fmt::format("the token counts of layer {} are all zero", block + 1));
  }
  return Ok{};
}

Status check_experts(const ModelSpec& model) {
  const ExpertShape& experts = model.experts;
  const auto bad = [](std::string message, std::string hint) {
    return bad_input(std::move(message), "", std::move(hint));
  };
  if (experts.per_token < 1 || experts.per_token > experts.count) {
    return bad(fmt::format("experts.per_token is {}, but the model has {} experts",
                           experts.per_token, experts.count),
               fmt::format("experts.per_token must be between 1 and {}", experts.count));
  }
  if (!(experts.capacity_factor > 0)) {
    return bad(fmt::format("experts.capacity_factor is {}", experts.capacity_factor),
               "it must be above 0; 1 suffices for balanced experts");
  }
  if (model.linear_bias) {
    return bad("experts with linear_bias are not modelled",
               "experts without biases are: linear_bias false in a model file, "
               "--disable-bias-linear in Megatron's arguments");
  }
  if (experts.latent > 0 && experts.router.scales_input) {
    return bad("latent experts with scaled inputs are not modelled", "set latent to 0");
  }
  TPSIM_TRY_STATUS(check_counts(experts));
  const RouterShape& router = experts.router;
  if (router.groups < 1 || experts.count % router.groups != 0 || router.groups_kept < 1 ||
      router.groups_kept > router.groups) {
    return bad(fmt::format("{} experts are in {} groups, of which the router keeps {}",
                           experts.count, router.groups, router.groups_kept),
               "groups must divide the experts, and groups_kept must be between 1 and groups");
  }
  if (router.groups_kept * (experts.count / router.groups) < experts.per_token) {
    return bad(
        fmt::format("the {} kept groups of {} experts have fewer than the {} experts per token",
                    router.groups_kept, experts.count / router.groups, experts.per_token),
        "");
  }
  return Ok{};
}

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
               "set fused_qkv to false, or kv_heads to the number of heads");
  }
  if (attention.position == PositionKind::kRotary && attention.head_dim % 2 != 0) {
    return bad(fmt::format("rotary embedding needs an even head_dim, not {}", attention.head_dim));
  }
  if (reach(attention) > 0 && attention.chunk > 0) {
    return bad("attention cannot have chunks together with a window or an indexer");
  }
  const bool has_matrices = attention.key_values == KeyValueSource::kProjected;
  if (!has_matrices && (attention.latent.kv_rank > 0 || attention.value_dim > 0 ||
                        model.fused_qkv || attention.qkv_bias)) {
    return bad(
        "shared keys and values need equal widths, and exclude latents, biases and fused_qkv",
        "set key_values to projected");
  }
  if (attention.value_dim > 0 && (attention.latent.kv_rank > 0 || model.fused_qkv)) {
    return bad("value_dim needs separate projections of queries, keys and values",
               "remove value_dim of the attention; latent attention has its own");
  }
  const LatentShape& latent = attention.latent;
  if (latent.kv_rank > 0 && latent.nope_dim + latent.rope_dim != attention.head_dim) {
    return bad(fmt::format(
        "head_dim is {}; with latent attention it must be nope_dim + rope_dim = {} + {}",
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
      fmt::format("{} recurrent heads cannot share {} key heads evenly", r.heads, r.key_heads), "",
      "recurrent.heads must be a multiple of recurrent.key_heads");
}

Status check_planned(const std::vector<PlannedOp>& ops, bool in_part) {
  for (const PlannedOp& op : ops) {
    const auto bad = [&](const char* why) {
      return bad_input(fmt::format("planned op '{}': {}", op.name, why));
    };
    const bool is_linear = op.kind == PlannedOpKind::kLinear;
    const bool is_pairs = op.kind == PlannedOpKind::kPairs;
    if (is_linear != (op.columns > 0) || (is_linear && op.width < 1)) {
      return bad("a linear op needs a width and columns; other ops must have no columns");
    }
    if (is_pairs != (op.heads > 0) || (is_pairs && op.key_dim < 1)) {
      return bad("a pairs op needs heads and a key_dim; other ops must have no heads");
    }
    const bool sees = op.window > 0 || op.stride > 0;
    if (is_pairs && sees == in_part) {
      return bad(in_part ? "a pairs op of an encoder must have no window and no stride"
                         : "a pairs op needs a window or a stride");
    }
    if (!is_pairs && (op.key_dim > 0 || op.value_dim > 0 || op.window > 0 || op.most > 0)) {
      return bad("key_dim, value_dim, window and most are valid for pairs ops only");
    }
    if (in_part && op.sharding != PlannedSharding::kWhole)
      return bad("ops of encoders cannot be sharded");
    if (!is_linear && op.sharding == PlannedSharding::kColumns)
      return bad("only linear ops can be sharded by columns");
  }
  return Ok{};
}

Status check_parts(const ModelSpec& model) {
  for (const OuterPart& part : model.ends.parts) {
    if ((part.patches > 0) != (part.items > 0)) {
      return bad_input(
          fmt::format("part '{}' has {} patches and {} items", part.name, part.patches, part.items),
          "", "give both, or set both to 0 if the part runs on the training sequence");
    }
    for (const auto* ops : {&part.layer_ops, &part.ops}) {
      TPSIM_TRY_STATUS(check_planned(*ops, true));
      const bool has_pairs = std::any_of(ops->begin(), ops->end(), [](const PlannedOp& op) {
        return op.kind == PlannedOpKind::kPairs;
      });
      if (has_pairs && part.patches == 0) {
        return bad_input(
            fmt::format("part '{}' has an op of the kind pairs (attention), but patches is 0",
                        part.name),
            "", "set patches and items of the part");
      }
    }
  }
  return Ok{};
}

Status check_planned_mixer(const ModelSpec& model) {
  const auto gives_result = [&](const PlannedOp& op) {
    return op.sharding == PlannedSharding::kColumns && op.width == model.hidden;
  };
  const auto results = std::count_if(model.planned.begin(), model.planned.end(), gives_result);
  if (results == 1) return Ok{};
  return bad_input(
      fmt::format("{} planned ops give the mixer's result", results), "",
      "exactly one linear op must be sharded by columns with the model's hidden size as width");
}

Status check_block(const ModelSpec& model) {
  TPSIM_TRY_STATUS(check_planned(model.planned, false));
  if (model.mixer == MixerKind::kPlanned) TPSIM_TRY_STATUS(check_planned_mixer(model));
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
    return bad_input(fmt::format("blocks.of_layers has {} entries, but the model has {} layers",
                                 model.block_kinds.size(), model.layers));
  }
  for (const std::int64_t kind : model.block_kinds) {
    if (kind < 0 || kind >= block_kind_count(model)) {
      return bad_input(
          fmt::format("blocks.of_layers contains {}, but there are {} kinds of blocks, from 0",
                      kind, block_kind_count(model)));
    }
  }
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    TPSIM_TRY_STATUS(check_block(with_block_kind(model, kind)));
  }
  TPSIM_TRY_STATUS(check_parts(model));
  // Weight counts and values derived from them must fit 64-bit integers.
  constexpr double kMostWeights = 1e15;
  if (!(weights_at_most(model) <= kMostWeights)) {
    return bad_input(fmt::format("the model has about {:.0e} parameters; the limit is {:.0e}",
                                 weights_at_most(model), kMostWeights));
  }
  return Ok{};
}

}  // namespace tpsim
