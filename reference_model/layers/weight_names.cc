#include "reference_model/layers/weight_names.h"

namespace tpsim {
namespace {

WeightNames bloom_names(const ModelSpec& model) {
  WeightNames n;
  n.blocks = "h.";
  n.words = "word_embeddings.weight";
  n.final_norm = "ln_f";
  n.embedding_norm = "word_embeddings_layernorm";
  n.positions = "position_embeddings.weight";
  n.projections = {"self_attention.query", "self_attention.key", "self_attention.value"};
  if (model.fused_qkv) n.projections = {"self_attention.query_key_value"};
  n.output = "self_attention.dense";
  n.attention_norm = "input_layernorm";
  n.mlp_norm = "post_attention_layernorm";
  n.up = {"mlp.dense_h_to_4h"};
  n.down = "mlp.dense_4h_to_h";
  // BLOOM has no experts; the names follow Mixtral.
  n.router = "mlp.router";
  n.experts = "mlp.experts.";
  n.expert_up = {"dense_h_to_4h"};
  n.expert_down = "dense_4h_to_h";
  return n;
}

WeightNames llama_names() {
  WeightNames n;
  n.blocks = "model.layers.";
  n.words = "model.embed_tokens.weight";
  n.head = "lm_head.weight";
  n.final_norm = "model.norm";
  n.embedding_norm = "model.embed_tokens_layernorm";
  n.positions = "model.embed_positions.weight";
  n.projections = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  n.output = "self_attn.o_proj";
  n.q_norm = "self_attn.q_norm";
  n.k_norm = "self_attn.k_norm";
  n.sinks = "self_attn.sinks";
  n.attention_norm = "input_layernorm";
  n.mlp_norm = "post_attention_layernorm";
  n.up = {"mlp.gate_proj", "mlp.up_proj"};
  n.down = "mlp.down_proj";
  n.router = "mlp.gate";
  n.experts = "mlp.experts.";
  n.expert_up = {"gate_proj", "up_proj"};
  n.expert_down = "down_proj";
  n.shared_up = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"};
  n.shared_down = "mlp.shared_experts.down_proj";
  return n;
}

// Names of norms after the branches, in the families with such norms.
void name_outer_norms(const ModelSpec& model, WeightNames& n) {
  if (model.norm_place == NormPlace::kAfter) {
    n.after_attention_norm = "post_attention_layernorm";
    n.after_mlp_norm = "post_feedforward_layernorm";
  }
  if (model.norm_place != NormPlace::kAround) return;
  const bool glm = model.family == "glm4";
  n.after_attention_norm = glm ? "post_self_attn_layernorm" : "post_attention_layernorm";
  n.mlp_norm = glm ? "post_attention_layernorm" : "pre_feedforward_layernorm";
  n.after_mlp_norm = glm ? "post_mlp_layernorm" : "post_feedforward_layernorm";
}

void name_mixtral(WeightNames& n) {
  n.router = "block_sparse_moe.gate";
  n.experts = "block_sparse_moe.experts.";
  n.expert_up = {"w1", "w3"};
  n.expert_down = "w2";
}

void name_llama4(WeightNames& n) {
  n.up = {"feed_forward.gate_proj", "feed_forward.up_proj"};
  n.down = "feed_forward.down_proj";
  n.router = "feed_forward.router";
  n.experts = "feed_forward.experts.";
  n.shared_up = {"feed_forward.shared_expert.gate_proj", "feed_forward.shared_expert.up_proj"};
  n.shared_down = "feed_forward.shared_expert.down_proj";
}

}  // namespace

WeightNames names_of(const ModelSpec& model) {
  const std::string& family = model.family;
  const bool nameless = family.empty() || family == "gpt2";
  // BLOOM has no names for the matrices of a gated MLP.
  if ((family == "bloom" || nameless) && !is_gated(model.mlp)) {
    WeightNames n = bloom_names(model);
    n.head = model.tied_embedding ? n.words : "lm_head.weight";
    return n;
  }
  WeightNames n = llama_names();
  if (model.tied_embedding) n.head = n.words;
  if (nameless || family == "mixtral") name_mixtral(n);
  if (family == "llama4_text") name_llama4(n);
  if (family == "gpt_oss") n.router = "mlp.router";
  if (!is_gated(model.mlp)) {
    const bool is_starcoder = family == "starcoder2";
    n.up = {is_starcoder ? "mlp.c_fc" : "mlp.up_proj"};
    if (is_starcoder) n.down = "mlp.c_proj";
    n.expert_up = {"up_proj"};
    n.shared_up = {"mlp.shared_experts.up_proj"};
  }
  name_outer_norms(model, n);
  return n;
}

std::string block_prefix(const ModelSpec& model, std::int64_t layer) {
  return names_of(model).blocks + std::to_string(layer) + ".";
}

}  // namespace tpsim
