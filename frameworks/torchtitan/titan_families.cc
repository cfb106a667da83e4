// Recognizes models of torchtitan's registry that have the blocks of a published family. Their
// modules are converted to an equivalent Hugging Face config.json. Modules: torchtitan/models of
// b5bcd76.
#include "frameworks/torchtitan/titan_families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/model/model_json.h"

namespace tpsim {
namespace {

class Modules {
 public:
  explicit Modules(const TitanValues& values) : values_(values) {}

  std::string text(std::string_view key) const {
    const auto found = values_.find(fmt::format("model_spec.model.{}", key));
    return found == values_.end() ? "" : found->second;
  }
  std::int64_t number(std::string_view key) const {
    return parse_number<std::int64_t>(text(key)).value_or(0);
  }
  double real(std::string_view key, double unset) const {
    return parse_number<double>(text(key)).value_or(unset);
  }
  bool is_on(std::string_view key) const { return text(key) == "true"; }
  bool has(std::string_view module) const {
    return !text(fmt::format("{}._target_", module)).empty();
  }
  std::int64_t layers() const {
    std::int64_t count = 0;
    while (has(fmt::format("layers.{}", count))) ++count;
    return count;
  }
  // Returns the first layer that has this module, or -1.
  std::int64_t first_with(std::string_view module) const {
    for (std::int64_t layer = 0; has(fmt::format("layers.{}", layer)); ++layer) {
      if (has(fmt::format("layers.{}.{}", layer, module))) return layer;
    }
    return -1;
  }

 private:
  const TitanValues& values_;
};

// Returns the config.json keys that all families share.
std::string common_keys(const Modules& m, const std::string& attention) {
  return fmt::format(
      R"("hidden_size": {}, "num_hidden_layers": {}, "vocab_size": {}, "num_attention_heads": {},
 "tie_word_embeddings": {}, "rms_norm_eps": {}, "rope_theta": {})",
      m.number("dim"), m.layers(), m.number("vocab_size"), m.number(attention + "n_heads"),
      m.is_on("enable_weight_tying"), m.real("norm.eps", 1e-5),
      m.real(attention + "rope.theta", 10000));
}

// Returns the config.json of DeepSeek-V3 and models with the same blocks. If the router's scores
// are a softmax, the family is DeepSeek-V2. Empty for other models.
std::string deepseek_json(const Modules& m) {
  const std::int64_t sparse = m.first_with("moe");
  if (sparse < 0) return "";
  const std::string attention = "layers.0.attention.", moe = fmt::format("layers.{}.moe.", sparse);
  const bool is_sigmoid = m.text(moe + "router.score_func") == "sigmoid";
  const std::int64_t expert = m.number(moe + "routed_experts.inner_experts.hidden_dim");
  const std::int64_t shared = m.number(moe + "shared_experts.w1.out_features");
  if (expert < 1) return "";
  const std::int64_t q_rank = m.number(attention + "q_lora_rank");
  std::int64_t predictions = 0;
  while (m.has(fmt::format("mtp_layers.{}", predictions))) ++predictions;
  return fmt::format(
      R"({{"model_type": "{}", {}, "num_key_value_heads": {}, "intermediate_size": {},
 "moe_intermediate_size": {}, "n_routed_experts": {}, "num_experts_per_tok": {},
 "n_shared_experts": {}, "first_k_dense_replace": {}, "moe_layer_freq": 1, "q_lora_rank": {},
 "kv_lora_rank": {}, "qk_nope_head_dim": {}, "qk_rope_head_dim": {}, "v_head_dim": {},
 "n_group": {}, "topk_group": {}, "topk_method": "{}", "scoring_func": "{}",
 "norm_topk_prob": {}, "routed_scaling_factor": {}, "num_nextn_predict_layers": {}}})",
      is_sigmoid ? "deepseek_v3" : "deepseek_v2", common_keys(m, attention),
      m.number(attention + "n_heads"),
      std::max<std::int64_t>(1, m.number("layers.0.feed_forward.w1.out_features")), expert,
      m.number(moe + "num_experts"), m.number(moe + "router.top_k"), shared / expert, sparse,
      q_rank > 0 ? std::to_string(q_rank) : "null", m.number(attention + "kv_lora_rank"),
      m.number(attention + "qk_nope_head_dim"), m.number(attention + "qk_rope_head_dim"),
      m.number(attention + "v_head_dim"),
      std::max<std::int64_t>(1, m.number(moe + "router.num_expert_groups")),
      std::max<std::int64_t>(1, m.number(moe + "router.num_limited_groups")),
      is_sigmoid ? "noaux_tc" : "greedy", is_sigmoid ? "sigmoid" : "softmax",
      m.is_on(moe + "router.route_norm"), m.real(moe + "router.route_scale", 1), predictions);
}

std::string gpt_oss_json(const Modules& m) {
  const std::string attention = "layers.0.attention.", moe = "layers.0.moe.";
  std::vector<std::string> kinds;
  std::int64_t window = 0;
  for (std::int64_t layer = 0; layer < m.layers(); ++layer) {
    const std::int64_t here =
        m.number(fmt::format("layers.{}.attention.sliding_window_size", layer));
    window = std::max(window, here);
    kinds.emplace_back(here > 0 ? R"("sliding_attention")" : R"("full_attention")");
  }
  return fmt::format(
      R"({{"model_type": "gpt_oss", {}, "num_key_value_heads": {}, "head_dim": {},
 "intermediate_size": {}, "num_local_experts": {}, "num_experts_per_tok": {},
 "sliding_window": {}, "layer_types": [{}]}})",
      common_keys(m, attention), m.number(attention + "n_kv_heads"),
      m.number(attention + "head_dim"), m.number(moe + "routed_experts.inner_experts.hidden_dim"),
      m.number(moe + "num_experts"), m.number(moe + "router.top_k"),
      std::max<std::int64_t>(1, window), fmt::join(kinds, ", "));
}

std::string vision_keys(const Modules& m) {
  const std::string at = "vision_encoder.";
  if (!m.has("vision_encoder")) return "";
  return fmt::format(
      R"(, "vision_config": {{"depth": {}, "hidden_size": {}, "num_heads": {},
 "intermediate_size": {}, "out_hidden_size": {}, "in_channels": {}, "patch_size": {},
 "temporal_patch_size": {}, "spatial_merge_size": {}, "num_position_embeddings": {}}})",
      m.number(at + "num_layers"), m.number(at + "dim"), m.number(at + "num_heads"),
      m.number(at + "block.mlp.fc1.out_features"), m.number(at + "merger.fc2.out_features"),
      m.number(at + "in_channels"), m.number(at + "patch_size"),
      m.number(at + "temporal_patch_size"), m.number(at + "spatial_merge_size"),
      m.number(at + "num_position_embeddings"));
}

// Returns the config.json of Qwen3.5, dense or MoE, in which most layers are gated delta nets and
// some have full attention. Empty for other models.
std::string qwen3_5_json(const Modules& m) {
  const std::int64_t full = m.first_with("attention"), linear = m.first_with("delta_net");
  if (full < 0 || linear < 0) return "";
  const std::string attention = fmt::format("layers.{}.attention.", full);
  const std::string net = fmt::format("layers.{}.delta_net.", linear);
  const std::int64_t key = m.number(net + "key_head_dim"), value = m.number(net + "value_head_dim");
  const std::int64_t head = m.number(attention + "head_dim");
  if (key < 1 || value < 1 || head < 1) return "";
  std::vector<std::string> kinds;
  for (std::int64_t layer = 0; layer < m.layers(); ++layer) {
    const bool is_linear = m.has(fmt::format("layers.{}.delta_net", layer));
    kinds.emplace_back(is_linear ? R"("linear_attention")" : R"("full_attention")");
  }
  const std::string moe = "layers.0.moe.";
  const bool has_experts = m.has("layers.0.moe");
  const std::string feed_forward =
      has_experts
          ? fmt::format(
                R"("num_experts": {}, "num_experts_per_tok": {}, "moe_intermediate_size": {},
 "shared_expert_intermediate_size": {})",
                m.number(moe + "num_experts"), m.number(moe + "router.top_k"),
                m.number(moe + "routed_experts.inner_experts.hidden_dim"),
                m.number(moe + "shared_experts.w1.out_features"))
          : fmt::format(R"("intermediate_size": {})",
                        m.number("layers.0.feed_forward.w1.out_features"));
  const bool is_gated =
      m.number(attention + "wq.out_features") == 2 * m.number(attention + "n_heads") * head;
  return fmt::format(
      R"({{"model_type": "{}", "text_config": {{"model_type": "{}_text", {},
 "num_key_value_heads": {}, "head_dim": {}, "attn_output_gate": {}, {},
 "linear_num_value_heads": {}, "linear_num_key_heads": {}, "linear_key_head_dim": {},
 "linear_value_head_dim": {}, "linear_conv_kernel_dim": {}, "layer_types": [{}]}}{}}})",
      has_experts ? "qwen3_5_moe" : "qwen3_5", has_experts ? "qwen3_5_moe" : "qwen3_5",
      common_keys(m, attention), m.number(attention + "n_kv_heads"), head, is_gated, feed_forward,
      m.number(net + "in_proj_v.out_features") / value,
      m.number(net + "in_proj_k.out_features") / key, key, value,
      m.number(net + "conv_kernel_size"), fmt::join(kinds, ", "), vision_keys(m));
}

std::string family_json(const Modules& m) {
  const std::string first = m.text("layers.0.attention._target_");
  if (first.ends_with(".deepseek_v3.model.Attention.Config")) return deepseek_json(m);
  if (first.ends_with(".gpt_oss.model.Attention.Config")) return gpt_oss_json(m);
  if (m.text("_target_").ends_with(".Qwen35Model.Config")) return qwen3_5_json(m);
  return "";
}

}  // namespace

std::optional<ModelSpec> titan_family_model(const TitanValues& values) {
  const std::string json = family_json(Modules(values));
  if (json.empty()) return std::nullopt;
  Result<ModelSpec> model = parse_model(json, "torchtitan's registry");
  if (!model.ok()) return std::nullopt;
  return *std::move(model);
}

}  // namespace tpsim
