#include "core/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace tpsim {
namespace {

std::int64_t mlp_matrices(const ModelSpec& model) { return model.mlp == MlpKind::kSwiglu ? 3 : 2; }

std::int64_t norm_parameters(const ModelSpec& model) {
  return model.norm == NormKind::kLayerNorm ? 2 * model.hidden : model.hidden;
}

std::int64_t mlp_bias_parameters(const ModelSpec& model) {
  // Of the matrices that widen, and of the one that narrows.
  return (mlp_matrices(model) - 1) * model.ffn_hidden + model.hidden;
}

// Matrices of the feed-forward parts that one token passes, the router among them.
std::int64_t mlp_weights(const ModelSpec& model, std::int64_t experts) {
  const std::int64_t one = mlp_matrices(model) * model.hidden * model.ffn_hidden;
  return has_experts(model) ? experts * one + model.experts.count * model.hidden : one;
}

std::int64_t block_parameters(const ModelSpec& model, std::int64_t experts) {
  const std::int64_t qkv_width = query_width(model) + 2 * kv_width(model);
  const std::int64_t matrices =
      model.hidden * (qkv_width + query_width(model)) + mlp_weights(model, experts);
  const std::int64_t biases =
      model.linear_bias ? qkv_width + model.hidden + mlp_bias_parameters(model) : 0;
  return matrices + biases + 2 * norm_parameters(model);
}

// All weights, some twice, in a type that no file overflows.
double weights_at_most(const ModelSpec& model) {
  const auto times = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  const double heads = times(model.attention.heads + 2 * model.attention.kv_heads, 2);
  const double attention = heads * times(model.attention.head_dim, model.hidden);
  const double mlp = 3 * times(model.hidden, model.ffn_hidden) *
                     static_cast<double>(std::max<std::int64_t>(1, model.experts.count));
  const double words = 2 * times(model.vocab + model.vocab_multiple + model.seq, model.hidden);
  return static_cast<double>(model.layers) * (attention + mlp) + words;
}

Status check_experts(const ModelSpec& model) {
  const ExpertShape& experts = model.experts;
  const auto bad = [](std::string message, std::string hint) {
    return Error{ErrorKind::kBadInput, std::move(message), "", std::move(hint)};
  };
  if (experts.per_token < 1 || experts.per_token > experts.count) {
    return bad(fmt::format("{} of {} experts for a token", experts.per_token, experts.count),
               fmt::format("experts.per_token lies between 1 and {}", experts.count));
  }
  if (!(experts.capacity_factor > 0)) {
    return bad(fmt::format("experts.capacity_factor is {}", experts.capacity_factor),
               "it must be above 0; 1 is what balanced experts need");
  }
  if (model.linear_bias) {
    return bad("experts with biases are not modelled", "set linear_bias to false");
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

std::int64_t query_width(const ModelSpec& model) {
  return model.attention.heads * model.attention.head_dim;
}

std::int64_t kv_width(const ModelSpec& model) {
  return model.attention.kv_heads * model.attention.head_dim;
}

std::int64_t block_parameter_count(const ModelSpec& model) {
  return block_parameters(model, model.experts.count);
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  // A router that picks a few experts leaves the others' weights unused by this token.
  const std::int64_t idle =
      block_parameter_count(model) - block_parameters(model, model.experts.per_token);
  return parameter_count(model) - model.layers * idle;
}

std::int64_t parameter_count(const ModelSpec& model) {
  std::int64_t embedding = model.vocab * model.hidden;
  // The head has a matrix of its own.
  if (!model.tied_embedding) embedding *= 2;
  if (model.attention.position == PositionKind::kLearned) embedding += model.seq * model.hidden;
  if (model.embedding_norm) embedding += norm_parameters(model);
  return embedding + model.layers * block_parameter_count(model) + norm_parameters(model);
}

Flops attention_core_forward_flops(const ModelSpec& model) {
  const double s = static_cast<double>(model.seq);
  // QK' and PV, two FLOPs each, over the full square, as Narayanan et al. 2021 count; a causal
  // query sees half of it.
  return Flops(4.0 * s * s * static_cast<double>(query_width(model) * model.layers));
}

Flops blocks_forward_flops(const ModelSpec& model) {
  const std::int64_t weights = model.hidden * (2 * query_width(model) + 2 * kv_width(model)) +
                               mlp_weights(model, model.experts.per_token);
  const double matmul = 2.0 * static_cast<double>(model.seq) * static_cast<double>(weights);
  return Flops(matmul * static_cast<double>(model.layers)) + attention_core_forward_flops(model);
}

Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch) {
  const Flops logits(2.0 * static_cast<double>(model.seq) * static_cast<double>(model.hidden) *
                     static_cast<double>(model.vocab));
  // Backward takes twice the products of forward: one for inputs, one for weights.
  return 3.0 * static_cast<double>(global_batch) * (blocks_forward_flops(model) + logits);
}

std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp) {
  const std::int64_t multiple = model.vocab_multiple * tp;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

Status validate(const ModelSpec& model) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"layers", model.layers},
                                                        {"hidden", model.hidden},
                                                        {"ffn_hidden", model.ffn_hidden},
                                                        {"vocab", model.vocab},
                                                        {"seq", model.seq},
                                                        {"heads", model.attention.heads},
                                                        {"kv_heads", model.attention.kv_heads},
                                                        {"head_dim", model.attention.head_dim}};
  constexpr std::int64_t kLargest = std::int64_t{1} << 24, kMostHeads = 1 << 16;
  for (const auto& [name, size] : sizes) {
    const bool counts_heads = std::string_view(name).ends_with("heads");
    const std::int64_t most = counts_heads ? kMostHeads : kLargest;
    if (size < 1 || size > most) {
      return Error{ErrorKind::kBadInput,
                   fmt::format("{} is {}; it must lie between 1 and {}", name, size, most), "", ""};
    }
  }
  if (model.attention.heads % model.attention.kv_heads != 0) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("{} heads cannot share {} kv_heads evenly", model.attention.heads,
                             model.attention.kv_heads),
                 "", "heads must be a multiple of kv_heads"};
  }
  // Numbers of weights, and what is made of them, are whole numbers of 64 bits.
  constexpr double kMostWeights = 1e15;
  if (!(weights_at_most(model) <= kMostWeights)) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("its sizes make some {:.0e} weights; at most {:.0e} are counted",
                             weights_at_most(model), kMostWeights),
                 "", ""};
  }
  if (model.fused_qkv && model.attention.kv_heads != model.attention.heads) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("fused_qkv keeps q, k and v of each head together: {} heads cannot "
                             "share {} kv_heads",
                             model.attention.heads, model.attention.kv_heads),
                 "", "set fused_qkv to false, or kv_heads to heads"};
  }
  if (has_experts(model)) TPSIM_TRY_STATUS(check_experts(model));
  if (model.attention.position == PositionKind::kRotary && model.attention.head_dim % 2 != 0) {
    return Error{
        ErrorKind::kBadInput,
        fmt::format("rotary embedding needs an even head_dim, not {}", model.attention.head_dim),
        "", ""};
  }
  return Ok{};
}

}  // namespace tpsim
