#include "core/model_spec.h"

#include <fmt/format.h>

#include <utility>

namespace tpsim {
namespace {

std::int64_t mlp_matrices(const ModelSpec& model) { return model.mlp == MlpKind::kSwiglu ? 3 : 2; }

std::int64_t norm_parameters(const ModelSpec& model) {
  return model.norm == NormKind::kLayerNorm ? 2 * model.hidden : model.hidden;
}

std::int64_t mlp_bias_parameters(const ModelSpec& model) {
  return (mlp_matrices(model) - 1) * model.ffn_hidden + model.hidden;
}

}  // namespace

std::int64_t query_width(const ModelSpec& model) {
  return model.attention.heads * model.attention.head_dim;
}

std::int64_t kv_width(const ModelSpec& model) {
  return model.attention.kv_heads * model.attention.head_dim;
}

std::int64_t block_parameter_count(const ModelSpec& model) {
  const std::int64_t qkv_width = query_width(model) + 2 * kv_width(model);
  const std::int64_t matrices = model.hidden * (qkv_width + query_width(model)) +
                                mlp_matrices(model) * model.hidden * model.ffn_hidden;
  const std::int64_t biases =
      model.linear_bias ? qkv_width + model.hidden + mlp_bias_parameters(model) : 0;
  return matrices + biases + 2 * norm_parameters(model);
}

std::int64_t parameter_count(const ModelSpec& model) {
  std::int64_t embedding = model.vocab * model.hidden;
  if (!model.tied_embedding) embedding *= 2;
  if (model.attention.position == PositionKind::kLearned) embedding += model.seq * model.hidden;
  if (model.embedding_norm) embedding += norm_parameters(model);
  return embedding + model.layers * block_parameter_count(model) + norm_parameters(model);
}

Flops attention_core_forward_flops(const ModelSpec& model) {
  const double s = static_cast<double>(model.seq);
  return Flops(4.0 * s * s * static_cast<double>(query_width(model) * model.layers));
}

Flops blocks_forward_flops(const ModelSpec& model) {
  const std::int64_t weights = model.hidden * (2 * query_width(model) + 2 * kv_width(model)) +
                               mlp_matrices(model) * model.hidden * model.ffn_hidden;
  const double matmul = 2.0 * static_cast<double>(model.seq) * static_cast<double>(weights);
  return Flops(matmul * static_cast<double>(model.layers)) + attention_core_forward_flops(model);
}

Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch) {
  const Flops logits(2.0 * static_cast<double>(model.seq) * static_cast<double>(model.hidden) *
                     static_cast<double>(model.vocab));
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
  constexpr std::int64_t kLargest = std::int64_t{1} << 24;
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > kLargest) {
      return Error{ErrorKind::kBadInput,
                   fmt::format("{} is {}; it must lie between 1 and {}", name, size, kLargest), "",
                   ""};
    }
  }
  if (model.attention.heads % model.attention.kv_heads != 0) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("{} heads cannot share {} kv_heads evenly", model.attention.heads,
                             model.attention.kv_heads),
                 "", "heads must be a multiple of kv_heads"};
  }
  if (model.attention.position == PositionKind::kRotary && model.attention.head_dim % 2 != 0) {
    return Error{
        ErrorKind::kBadInput,
        fmt::format("rotary embedding needs an even head_dim, not {}", model.attention.head_dim),
        "", ""};
  }
  return Ok{};
}

}  // namespace tpsim
