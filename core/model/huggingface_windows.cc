// Families of 2026 whose layers differ in heads, windows and widths: Gemma 4, MiMo-V2, Step-3.5 and
// 3.7, Nemotron's LLaMAs from architecture search, Apertus.
#include <fmt/format.h>

#include <cmath>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

using Layer = std::int64_t;

// Apertus: a feed-forward part of two matrices, and an activation with two trained numbers per
// layer.
void read_apertus(Config& config) {
  ModelSpec& model = config.model;
  read_llama_keys(config,
                  {.positions = 65536, .rope_theta = 12e6, .epsilon = 1e-5, .activation_key = ""});
  llama_biases(config);
  read_activation(config, "hidden_act",
                  {{"xielu", MlpKind::kXielu}, {"relu2", MlpKind::kReluSquared}});
  config.require_flag("post_norm", false, "norms after the branches are not modelled here");
  const bool normalises = config.flag("qk_norm", true);
  model.attention.qk_norm = normalises ? QkNorm::kHead : QkNorm::kNone;
  if (model.mlp == MlpKind::kXielu) {
    model.planned = {planned_pass("mlp.act_fn", kTokensOp, 0, 0, 2)};
  }
  spread(config);
}

// Gemma 4: rope_parameters has one object per layer type.
void gemma4_rotary(Config& config, AttentionShape& global, AttentionShape& local) {
  const auto read = [](FieldReader& in, AttentionShape& attention) {
    in.allow_foreign_keys();
    in.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
    in.number("partial_rotary_factor", attention.rotary.fraction, {0, 1}, kOptional);
  };
  config.in.object(
      "rope_parameters",
      [&](FieldReader& in) {
        in.allow_foreign_keys();
        in.object(
            "full_attention", [&](FieldReader& inner) { read(inner, global); }, kOptional);
        in.object(
            "sliding_attention", [&](FieldReader& inner) { read(inner, local); }, kOptional);
      },
      kOptional);
}

// Gemma 4 with experts. The dense part is modelled as the shared expert. Extra parts: three norms,
// a gain on the router's input and a scale per expert on its weights.
void gemma4_experts(Config& config) {
  ModelSpec& model = config.model;
  ExpertShape& experts = model.experts;
  const std::int64_t dense_width = model.ffn_hidden;
  read_experts(config, "num_experts", "top_k_experts");
  config.in.integer(
      config.in.has("moe_intermediate_size") ? "moe_intermediate_size" : "expert_intermediate_size",
      model.ffn_hidden, {});
  experts.shared_ffn = dense_width;
  experts.router.score = RouterScore::kAll;
  experts.router.renormalises = true;
  const std::int64_t hidden = model.hidden;
  model.planned.push_back(
      planned_pass("feedforward_layernorms", kTokensOp, 6 * hidden, 2 * hidden, 3 * hidden));
  model.planned.push_back(
      planned_pass("router.scales", kTokensOp, 2 * hidden, 0, hidden + experts.count));
}

// Small Gemma 4 models: per-layer embedding tables, and their projections in every block.
void gemma4_layer_inputs(Config& config, std::int64_t width) {
  ModelSpec& model = config.model;
  const std::int64_t rows = config.integer("vocab_size_per_layer_input", model.vocab);
  const std::int64_t hidden = model.hidden, all = model.layers * width;
  OuterPart table{
      .name = "per_layer", .layers = 0, .patches = 0, .items = 0, .layer_ops = {}, .ops = {}};
  table.ops.push_back(planned_pass("embed_tokens_per_layer", kWholeOp, 2 * all, 0, rows * all));
  table.ops.push_back(planned_linear("per_layer_model_projection", kWholeOp, all, hidden, width));
  model.ends.parts.push_back(table);
  model.planned.push_back(planned_linear("per_layer_input_gate", kTokensOp, width, hidden));
  model.planned.push_back(planned_linear("per_layer_projection", kTokensOp, hidden, width, hidden));
}

void gemma4_layers(Config& config, const AttentionShape& global, const AttentionShape& local) {
  ModelSpec& model = config.model;
  const std::int64_t borrowed = config.integer("num_kv_shared_layers", 0, {0, 1 << 14});
  const bool doubles = config.flag("use_double_wide_mlp", false);
  const std::int64_t period = config.integer("sliding_window_pattern", 6, {1, 1 << 20});
  const bool is_said = config.in.has("layer_types");
  const std::vector<bool> slides =
      layers_that_say(config, "layer_types", "sliding_attention", "full_attention");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<Layer>(i);
    const bool is_local = is_said ? slides[i] : (layer + 1) % period != 0;
    BlockShape& block = config.layers[i];
    block.attention = is_local ? local : global;
    if (layer < model.layers - borrowed) continue;
    block.attention.key_values = KeyValueSource::kEarlierLayer;
    if (doubles && block.experts.count == 0) block.ffn_hidden *= 2;
  }
}

void read_gemma4(Config& config) {
  ModelSpec& model = config.model;
  FieldReader& in = config.in;
  read_sizes(config, {.vocab = ""});
  model.vocab = config.integer("vocab_size", 262144);
  AttentionShape local = model.attention;
  local.position = PositionKind::kRotary;
  local.kv_heads = config.integer("num_key_value_heads", local.heads);
  local.head_dim = config.integer("head_dim", 256);
  local.qk_norm = QkNorm::kHead;
  local.score.scale = 1;
  read_attention_dropout(config);
  read_positions(config, "max_position_embeddings", 131072);
  model.norm_epsilon = config.number("rms_norm_eps", 1e-6, {0, 1});
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  model.linear_bias = model.fused_qkv = false;
  model.norm = NormKind::kRmsNorm;
  model.norm_place = NormPlace::kAround;
  model.ends.embedding_scale = std::sqrt(static_cast<double>(model.hidden));
  model.ends.logit_cap = config.number_or_none("final_logit_softcapping", 0, {1e-6, 1e6});
  read_activation(config, "hidden_activation", {{"gelu_pytorch_tanh", MlpKind::kGeglu}});
  config.require_flag("attention_bias", false, "biases of attention are not modelled here");
  if (config.text("use_bidirectional_attention", "vision") == "all") {
    in.reject("use_bidirectional_attention", "only causal attention is modelled");
  }
  AttentionShape global = local;
  global.head_dim = config.integer("global_head_dim", local.head_dim);
  if (config.flag("attention_k_eq_v", false)) {
    global.key_values = KeyValueSource::kSameMatrix;
    global.kv_heads = config.integer("num_global_key_value_heads", local.kv_heads);
  }
  local.window = config.integer("sliding_window", 1024, kPositionRange);
  gemma4_rotary(config, global, local);
  model.attention = local;
  if (config.flag("enable_moe_block", false)) gemma4_experts(config);
  const std::int64_t width = config.integer_or_none("hidden_size_per_layer_input", 0, {0, 1 << 20});
  if (width > 0) gemma4_layer_inputs(config, width);
  for (const char* key :
       {"num_experts", "top_k_experts", "expert_intermediate_size", "moe_intermediate_size",
        "vocab_size_per_layer_input", "num_global_key_value_heads"}) {
    config.pass_over(key);
  }
  spread(config);
  gemma4_layers(config, global, local);
}

// MiMo-V2: full and windowed layers with different heads, values narrower than keys, attention
// sinks.
void read_mimo_v2(Config& config) {
  ModelSpec& model = config.model;
  model.attention.rotary.fraction = 1;
  read_llama_keys(config, {.positions = 262144,
                           .rope_theta = 5e6,
                           .epsilon = 1e-5,
                           .epsilon_key = "layernorm_epsilon"});
  const std::int64_t dense_width = model.ffn_hidden;
  AttentionShape& full = model.attention;
  full.value_dim = config.integer("v_head_dim", 0);
  attention_biases(config);
  full.score.sinks = config.flag("add_full_attention_sink_bias", false);
  AttentionShape local = full;
  local.heads = config.integer("swa_num_attention_heads", full.heads);
  local.kv_heads = config.integer("swa_num_key_value_heads", full.kv_heads);
  local.head_dim = config.integer("swa_head_dim", full.head_dim);
  local.value_dim = config.integer("swa_v_head_dim", full.value_dim);
  local.rope_theta = config.number("swa_rope_theta", full.rope_theta, {1, 1e12});
  local.score.sinks = config.flag("add_swa_attention_sink_bias", false);
  local.window = config.integer("sliding_window", 128, kPositionRange);
  for (AttentionShape* shape : {&full, &local}) {
    if (shape->value_dim == shape->head_dim) shape->value_dim = 0;
  }
  for (const char* key : {"sliding_window_size", "attention_chunk_size"}) config.pass_over(key);
  if (config.number("attention_value_scale", 1, {1e-9, 1e9}) != 1) {
    config.note("attention_value_scale: adds no cost, since it is part of the projection");
  }
  deepseek_experts(config);
  RouterShape& router = model.experts.router;
  sigmoid_router(router);
  config.require_text("scoring_func", "sigmoid");
  config.require_text("topk_method", "noaux_tc");
  read_prediction_layers(config);
  spread(config);
  const std::vector<bool> has_experts = flags_of_layers(config, "moe_layer_freq");
  const std::vector<bool> slides = flags_of_layers(config, "hybrid_layer_pattern");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (!has_experts.empty() && !has_experts[i]) {
      make_dense(config, static_cast<Layer>(i), dense_width);
    }
    if (!slides.empty() && slides[i]) config.layers[i].attention = local;
  }
}

// Step-3.5 and 3.7: windowed layers may have another number of heads.
AttentionShape step_local_attention(Config& config) {
  AttentionShape local = config.model.attention;
  local.window = config.integer("sliding_window", 512, kPositionRange);
  config.in.object(
      "attention_other_setting",
      [&](FieldReader& in) {
        in.allow_foreign_keys();
        in.integer("num_attention_heads", local.heads, {1, 1 << 16}, kOptional);
        in.integer("num_attention_groups", local.kv_heads, {1, 1 << 16}, kOptional);
        in.integer("head_dim", local.head_dim, {}, kOptional);
      },
      kOptional);
  return local;
}

std::vector<bool> step_layers_with_experts(Config& config) {
  const Layer dense = config.integer("first_k_dense_replace", 0, {0, 1 << 14});
  std::vector<bool> has(config.layers.size(), false);
  if (!config.in.has("moe_layers_enum")) {
    for (std::size_t i = 0; i < has.size(); ++i) has[i] = static_cast<Layer>(i) >= dense;
    return has;
  }
  std::vector<std::int64_t> listed;
  if (config.in.is_list("moe_layers_enum")) {
    config.in.integers("moe_layers_enum", listed, {0, 1 << 14});
  } else {
    // moe_layers_enum is a text: "3,4,5".
    std::string text = config.text("moe_layers_enum", "") + ",";
    for (std::size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',')) {
      listed.push_back(std::atoll(text.substr(0, comma).c_str()));
      text.erase(0, comma + 1);
    }
  }
  for (const std::int64_t layer : listed) {
    if (layer >= 0 && layer < static_cast<Layer>(has.size())) {
      has[static_cast<std::size_t>(layer)] = true;
    }
  }
  return has;
}

void step_experts(Config& config) {
  ModelSpec& model = config.model;
  const bool is_step35 = config.in.has("moe_num_experts");
  read_experts(config, is_step35 ? "moe_num_experts" : "num_experts",
               config.in.has("moe_top_k") ? "moe_top_k" : "num_experts_per_tok");
  config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
  ExpertShape& experts = model.experts;
  const std::int64_t shared = config.integer("share_expert_dims", model.ffn_hidden, {0, 1 << 24});
  experts.shared_ffn = config.integer("share_expert_dim", shared, {0, 1 << 24});
  config.integer("n_shared_experts", 1, {1, 1});
  sigmoid_router(experts.router);
  experts.router.correction_bias = config.flag("use_moe_router_bias", true);
  experts.router.renormalises = config.flag("norm_expert_weight", true);
  experts.router.scaling = config.number("moe_router_scaling_factor", 1, {1e-9, 1e9});
  config.require_text(
      config.in.has("moe_router_activation") ? "moe_router_activation" : "scoring_func", "sigmoid");
}

// Adds the ops that gate every head of the attention output, as in Step-3.5. Files of Step-3.7
// state neither these gates nor the norms of q and k.
void add_head_gates(BlockShape& block, std::int64_t hidden) {
  const std::int64_t heads = block.attention.heads;
  const std::int64_t width = heads * block.attention.head_dim;
  block.planned.push_back(planned_linear("g_proj", kRowsOp, heads, hidden));
  block.planned.push_back(planned_pass("head_gate", kRowsOp, 2 * width, width));
}

void read_step(Config& config) {
  ModelSpec& model = config.model;
  const bool is_first = model.family == "step3p5" || model.family == "step3p5_text";
  read_llama_keys(config, {.head_dim = 128, .positions = 65536, .epsilon = 1e-5});
  model.attention.kv_heads = config.integer("num_attention_groups", model.attention.kv_heads);
  model.attention.qk_norm = config.flag("use_qk_norm", is_first) ? QkNorm::kHead : QkNorm::kNone;
  const bool gates = config.flag("use_head_wise_attn_gate", is_first);
  const std::int64_t dense_width = model.ffn_hidden;
  step_experts(config);
  for (const char* key : {"max_seq_len", "swiglu_limits", "swiglu_limits_shared", "need_fp32_gate",
                          "yarn_only_types", "partial_rotary_factors", "use_rope_layers",
                          "mtp_layer_types", "use_moe", "moe_every_n_layer", "moe_layer_offset"}) {
    config.pass_over(key);
  }
  read_prediction_layers(config);
  spread(config);
  const AttentionShape local = step_local_attention(config);
  std::vector<std::string> types;
  if (config.in.has("layer_types")) config.in.texts("layer_types", types);
  // The published lists continue with the MTP layers.
  if (!types.empty() && types.size() < config.layers.size()) {
    return config.reject_length("layer_types", types.size());
  }
  const std::vector<bool> has_experts = step_layers_with_experts(config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (!types.empty() && types[i] == "sliding_attention") config.layers[i].attention = local;
    if (!has_experts[i]) make_dense(config, static_cast<Layer>(i), dense_width);
    if (gates) add_head_gates(config.layers[i], model.hidden);
  }
}

// One layer of Nemotron's LLaMAs from architecture search, in which attention and feed-forward part
// differ between layers or are absent.
struct SearchedBlock {
  std::int64_t group = 0;  // query heads per key head; 0: no attention
  double ffn_factor = 0;   // 0: no feed-forward part
};

SearchedBlock read_searched_block(FieldReader& in) {
  SearchedBlock block;
  in.allow_foreign_keys();
  const auto refuse_linear = [](FieldReader& part) {
    bool is_linear = false;
    part.flag("replace_with_linear", is_linear, kOptional);
    part.require(!is_linear, "replace_with_linear",
                 "a linear layer in place of attention or MLP is not modelled");
  };
  in.object("attention", [&](FieldReader& part) {
    part.allow_foreign_keys();
    refuse_linear(part);
    bool is_absent = false;
    part.flag("no_op", is_absent, kOptional);
    if (!is_absent) part.integer("n_heads_in_group", block.group, {1, 1 << 16});
  });
  in.object("ffn", [&](FieldReader& part) {
    part.allow_foreign_keys();
    refuse_linear(part);
    bool is_absent = false;
    part.flag("no_op", is_absent, kOptional);
    if (!is_absent) part.number("ffn_mult", block.ffn_factor, {1e-3, 1e3});
  });
  return block;
}

// Returns the feed-forward width: two thirds of factor times hidden, rounded up to a multiple of
// 256.
std::int64_t searched_width(double factor, std::int64_t hidden) {
  constexpr std::int64_t kMultiple = 256;
  const auto width = static_cast<std::int64_t>(2 * factor * static_cast<double>(hidden) / 3);
  return (width + kMultiple - 1) / kMultiple * kMultiple;
}

void read_nemotron_nas(Config& config) {
  ModelSpec& model = config.model;
  read_llama_keys(config, {.positions = 131072, .epsilon = 1e-5, .sizes = {.ffn = ""}});
  llama_biases(config);
  config.pass_over("intermediate_size");
  std::vector<SearchedBlock> blocks;
  config.in.objects("block_configs", blocks,
                    [](FieldReader& in, SearchedBlock& block) { block = read_searched_block(in); });
  spread(config);
  if (blocks.size() != config.layers.size()) {
    return config.reject_length("block_configs", blocks.size());
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    BlockShape& layer = config.layers[i];
    layer.ffn_hidden =
        blocks[i].ffn_factor > 0 ? searched_width(blocks[i].ffn_factor, model.hidden) : 0;
    if (blocks[i].group == 0) {
      layer.mixer = MixerKind::kNone;
      continue;
    }
    if (layer.attention.heads % blocks[i].group != 0) {
      return config.in.reject("block_configs",
                              fmt::format("{} heads are not divisible by n_heads_in_group = {}",
                                          layer.attention.heads, blocks[i].group));
    }
    layer.attention.kv_heads = layer.attention.heads / blocks[i].group;
  }
}

constexpr Family kWindows[] = {{"apertus", read_apertus},       {"gemma4", read_gemma4},
                               {"gemma4_text", read_gemma4},    {"mimo_v2", read_mimo_v2},
                               {"mimo_v2_flash", read_mimo_v2}, {"nemotron-nas", read_nemotron_nas},
                               {"step3p5", read_step},          {"step3p5_text", read_step},
                               {"step3p7", read_step},          {"step3p7_text", read_step}};

}  // namespace

std::span<const Family> window_families() { return kWindows; }

}  // namespace tpsim
