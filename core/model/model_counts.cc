// Counts parameters and FLOPs of a model from its shape.
#include <algorithm>
#include <cmath>

#include "core/model/model_spec.h"

namespace tpsim {
namespace {

std::int64_t norm_parameters(const ModelSpec& model) {
  const bool has_bias = model.norm == NormKind::kLayerNorm && model.norm_bias;
  return has_bias ? 2 * model.hidden : model.hidden;
}

// Number of norms per block: one or two per branch, or one for both branches.
std::int64_t norm_count(const ModelSpec& model) {
  const std::int64_t branches = branch_count(model);
  if (model.norm_place == NormPlace::kAround) return 2 * branches;
  return model.norm_place == NormPlace::kOneParallel ? 1 : branches;
}

// Number of biases of the up (and gate) projections and of the down projection.
std::int64_t mlp_biases(const ModelSpec& model, std::int64_t ffn) {
  return (mlp_matrices(model) - 1) * ffn + model.hidden;
}

// Weights of the feed-forward matrices, including the router, with `experts` experts counted.
std::int64_t mlp_weights(const ModelSpec& model, std::int64_t experts) {
  const std::int64_t matrices = mlp_matrices(model) * model.hidden;
  if (!has_experts(model)) return matrices * model.ffn_hidden;
  const std::int64_t gate = model.experts.shared_gate ? model.hidden : 0;
  const std::int64_t routed =
      mlp_matrices(model) * expert_width(model) * experts * model.ffn_hidden;
  return routed + matrices * model.experts.shared_ffn + model.experts.count * model.hidden + gate +
         2 * model.experts.latent * model.hidden;
}

std::int64_t mlp_parameters(const ModelSpec& model, std::int64_t experts) {
  std::int64_t biases = 0;
  if (!has_experts(model)) {
    biases =
        has_feed_forward(model) && has_mlp_bias(model) ? mlp_biases(model, model.ffn_hidden) : 0;
  } else {
    if (model.experts.bias) biases += experts * mlp_biases(model, model.ffn_hidden);
    if (model.experts.router.bias) biases += model.experts.count;
  }
  return mlp_weights(model, experts) + biases;
}

// Weights of the up-projections of latent attention.
std::int64_t latent_up_weights(const ModelSpec& model) {
  const LatentShape& latent = model.attention.latent;
  return latent.q_rank * query_width(model) +
         latent.kv_rank * model.attention.heads * (latent.nope_dim + latent.value_dim);
}

// All weights of latent attention, without norms and biases.
std::int64_t latent_weights(const ModelSpec& model) {
  const LatentShape& latent = model.attention.latent;
  const std::int64_t q = latent.q_rank > 0 ? latent.q_rank : query_width(model);
  const std::int64_t down = model.hidden * (q + latent.kv_rank + latent.rope_dim);
  return down + latent_up_weights(model) + attention_width(model) * model.hidden;
}

std::int64_t attention_weights(const ModelSpec& model) {
  if (model.attention.latent.kv_rank > 0) return latent_weights(model);
  const std::int64_t gate = model.attention.output_gate ? query_width(model) : 0;
  return model.hidden *
         (query_width(model) + gate + attention_width(model) + projected_kv_width(model));
}

std::int64_t qk_norm_parameters(const ModelSpec& model) {
  switch (model.attention.qk_norm) {
    case QkNorm::kNone:
    case QkNorm::kPlain: return 0;
    case QkNorm::kHead: {
      const bool has_keys = model.attention.key_values != KeyValueSource::kEarlierLayer;
      return (has_keys ? 2 : 1) * model.attention.head_dim;
    }
    case QkNorm::kWidth:
    case QkNorm::kEachHead: return query_width(model) + kv_width(model);
  }
  return 0;
}

std::int64_t attention_parameters(const ModelSpec& model) {
  const LatentShape& latent = model.attention.latent;
  const bool is_latent = latent.kv_rank > 0;
  const std::int64_t projected = is_latent ? latent.q_rank + latent.kv_rank + latent.rope_dim
                                           : query_width(model) + projected_kv_width(model);
  std::int64_t sum = attention_weights(model) + qk_norm_parameters(model);
  if (is_latent) sum += latent.q_rank + latent.kv_rank;  // norms of the latents
  if (has_qkv_bias(model)) sum += projected;
  if (has_output_bias(model)) sum += model.hidden;
  return model.attention.score.sinks ? sum + model.attention.heads : sum;
}

// Input and output projections of a recurrence. recurrent_parameters() adds the convolution, decays
// and step sizes per head, and the norm before the gate; Mamba-2 also has a skip connection.
std::int64_t recurrent_weights(const ModelSpec& model) {
  return model.hidden * (recurrent_inputs(model) + recurrent_values(model.recurrent));
}

std::int64_t recurrent_parameters(const ModelSpec& model) {
  const RecurrentShape& r = model.recurrent;
  const std::int64_t values = recurrent_values(r), channels = recurrent_channels(r);
  const bool is_mamba = model.mixer == MixerKind::kMamba2;
  const std::int64_t convolution = channels * (r.convolution + (r.convolution_bias ? 1 : 0));
  const std::int64_t decays = r.channel_decay ? r.heads * r.key_dim : r.heads;
  const std::int64_t of_heads = is_mamba ? 3 * r.heads + values : r.heads + decays + r.value_dim;
  return recurrent_weights(model) + convolution + of_heads;
}

std::int64_t mixer_parameters(const ModelSpec& model) {
  switch (model.mixer) {
    case MixerKind::kAttention: return attention_parameters(model);
    case MixerKind::kMamba2:
    case MixerKind::kDeltaNet: return recurrent_parameters(model);
    case MixerKind::kPlanned:
    case MixerKind::kNone: break;
  }
  return 0;
}

std::int64_t block_parameters(const ModelSpec& model, std::int64_t experts) {
  return mixer_parameters(model) + planned_parameters(model.planned) +
         mlp_parameters(model, experts) + norm_count(model) * norm_parameters(model);
}

// Sum of of_block() over all blocks. `count` returns how often a kind counts.
template <class OfBlock>
auto over_blocks(const ModelSpec& model, OfBlock of_block,
                 std::int64_t (*count)(const ModelSpec&, std::int64_t) = blocks_of_kind) {
  decltype(of_block(model)) sum{};
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const auto one = of_block(with_block_kind(model, kind));
    sum += static_cast<decltype(one)>(count(model, kind)) * one;
  }
  return sum;
}

// Sum of of_block() over the blocks that have weights of their own.
template <class OfBlock>
std::int64_t over_weights(const ModelSpec& model, OfBlock of_block) {
  return over_blocks(model, of_block, weights_of_kind);
}

// Query-key pairs of one sequence, by the convention of published FLOP counts. Causal attention
// counts as the full square; windows and chunks count as the corresponding share of the square.
double core_pairs(const ModelSpec& model) {
  const auto s = static_cast<double>(model.seq);
  const auto causal = [](double length) { return length * (length + 1) / 2; };
  if (reach(model.attention) > 0) {
    const double w = std::min(s, static_cast<double>(reach(model.attention)));
    return s * s * (s * w - w * (w - 1) / 2) / causal(s);
  }
  if (model.attention.chunk > 0) {
    const double c = std::min(s, static_cast<double>(model.attention.chunk));
    const double whole = std::floor(s / c);
    return s * s * (whole * causal(c) + causal(s - whole * c)) / causal(s);
  }
  return s * s;
}

// Forward FLOPs of the recurrence of one block for one sequence. Counts two GEMVs with the state,
// key_dim x value_dim, per head and token.
double recurrence_flops(const ModelSpec& model) {
  if (!is_recurrent(model)) return 0;
  const RecurrentShape& r = model.recurrent;
  return 4.0 * static_cast<double>(model.seq * r.heads * r.key_dim) *
         static_cast<double>(r.value_dim);
}

// Forward FLOPs of QK' and PV of one block for one sequence, two per multiply-add.
double attention_core_flops(const ModelSpec& model) {
  if (model.mixer != MixerKind::kAttention) return 0;
  return 2.0 * core_pairs(model) * static_cast<double>(query_width(model) + attention_width(model));
}

double block_flops(const ModelSpec& model) { return block_forward_flops(model).total(); }

}  // namespace

BlockFlops block_forward_flops(const ModelSpec& model) {
  const auto of_weights = [&](std::int64_t weights) {
    return 2.0 * static_cast<double>(model.seq) * static_cast<double>(weights);
  };
  BlockFlops flops;
  flops.attention_core = attention_core_flops(model);
  flops.recurrence = recurrence_flops(model);
  if (is_recurrent(model)) flops.projections = of_weights(recurrent_weights(model));
  if (model.mixer == MixerKind::kAttention) {
    const bool is_latent = model.attention.latent.kv_rank > 0;
    const std::int64_t up = is_latent ? latent_up_weights(model) : 0;
    flops.latent_up = of_weights(up);
    flops.projections = of_weights(attention_weights(model) - up);
  }
  const PlannedFlops planned = planned_flops(model.planned, model.seq);
  flops.projections += planned.linear;
  (model.mixer == MixerKind::kPlanned ? flops.attention_core : flops.indexer) += planned.pairs;
  if (!has_feed_forward(model)) return flops;
  const std::int64_t shared = mlp_matrices(model) * model.hidden * model.experts.shared_ffn;
  flops.shared_experts = of_weights(shared);
  flops.feed_forward = of_weights(mlp_weights(model, model.experts.per_token) - shared);
  return flops;
}

std::int64_t block_parameter_count(const ModelSpec& model) {
  return block_parameters(model, model.experts.count);
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  // A token does not use the weights of the experts that its router did not select.
  return parameter_count(model) - over_weights(model, [](const ModelSpec& block) {
           return block_parameter_count(block) - block_parameters(block, block.experts.per_token);
         });
}

std::int64_t parameter_count(const ModelSpec& model) {
  std::int64_t embedding = model.vocab * model.hidden;
  // The head has its own matrix if the embedding is not tied.
  if (!model.tied_embedding) embedding *= 2;
  if (model.ends.head_bias) embedding += model.vocab;
  if (model.attention.position == PositionKind::kLearned) {
    embedding += position_rows(model) * model.hidden;
  }
  for (const OuterPart& part : model.ends.parts) embedding += planned_parameters(part);
  return embedding + over_weights(model, block_parameter_count) + outer_norm_parameters(model);
}

std::int64_t block_norm_parameters(const ModelSpec& model) {
  const bool attends = model.mixer == MixerKind::kAttention;
  return norm_count(model) * norm_parameters(model) + (attends ? qk_norm_parameters(model) : 0);
}

std::int64_t outer_norm_parameters(const ModelSpec& model) {
  return (model.embedding_norm ? 2 : 1) * norm_parameters(model);
}

std::int64_t block_matrix_parameters(const ModelSpec& model) {
  return over_weights(model, [](const ModelSpec& block) {
    const std::int64_t mixer = block.mixer == MixerKind::kAttention ? attention_weights(block)
                               : is_recurrent(block)                ? recurrent_weights(block)
                                                                    : 0;
    const std::int64_t mlp = has_feed_forward(block) ? mlp_weights(block, block.experts.count) : 0;
    return mixer + planned_parameters(block.planned) + mlp;
  });
}

Flops attention_core_forward_flops(const ModelSpec& model) {
  return Flops(over_blocks(
      model, [](const ModelSpec& block) { return block_forward_flops(block).attention_core; }));
}

Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch) {
  const auto heads = static_cast<double>(1 + model.ends.prediction_layers);
  const double logits = 2.0 * static_cast<double>(model.seq) * static_cast<double>(model.hidden) *
                        static_cast<double>(model.vocab);
  double parts = 0;
  for (const OuterPart& part : model.ends.parts) parts += planned_flops(part, model.seq);
  // Backward has twice the GEMMs of forward: dgrad and wgrad.
  return Flops(3.0 * static_cast<double>(global_batch) *
               (over_blocks(model, block_flops) + heads * logits + parts));
}

Flops half_mask_flops_per_step(const ModelSpec& model, std::int64_t global_batch) {
  const double cores = 3.0 * static_cast<double>(global_batch);
  return model_flops_per_step(model, global_batch) -
         0.5 * cores * attention_core_forward_flops(model);
}

}  // namespace tpsim
