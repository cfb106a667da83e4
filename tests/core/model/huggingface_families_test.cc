// Families that are not in tests/core/model/configs: the sizes of one published model of each
// family, and the parameter count of its published files. Sources:
// tests/core/model/configs/README.md.
#include <catch2/catch.hpp>
#include <string>

#include "core/model/model_json.h"
#include "core/model/model_support.h"

namespace tpsim {
namespace {

struct Published {
  const char* name;
  std::int64_t parameters, active;
  const char* config;
};

constexpr Published kPublished[] = {
    {"gpt-j-6b", 6'050'882'784, 6'050'882'784,
     R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": null,
         "n_positions": 2048, "rotary_dim": 64, "vocab_size": 50400, "rotary": true,
         "activation_function": "gelu_new", "attn_pdrop": 0.0, "embd_pdrop": 0.0,
         "resid_pdrop": 0.0, "tie_word_embeddings": false, "scale_attn_weights": true})"},
    {"codegen-350m", 356'712'448, 356'712'448,
     R"({"model_type": "codegen", "n_embd": 1024, "n_layer": 20, "n_head": 16, "n_inner": null,
         "n_positions": 2048, "rotary_dim": 32, "vocab_size": 51200})"},
    {"gpt-neo-125m", 125'198'592, 125'198'592,
     R"({"model_type": "gpt_neo", "hidden_size": 768, "num_layers": 12, "num_heads": 12,
         "intermediate_size": null, "vocab_size": 50257, "max_position_embeddings": 2048,
         "window_size": 256, "attention_types": [[["global", "local"], 6]],
         "attention_layers": ["global", "local", "global", "local", "global", "local", "global",
                              "local", "global", "local", "global", "local"]})"},
    {"starcoderbase", 15'517'456'384, 15'517'456'384,
     R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48,
         "n_inner": 24576, "n_positions": 8192, "vocab_size": 49152, "multi_query": true,
         "activation_function": "gelu"})"},
    {"mpt-7b", 6'649'286'656, 6'649'286'656,
     R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
         "expansion_ratio": 4, "max_seq_len": 2048, "vocab_size": 50432, "no_bias": true,
         "attn_config": {"alibi": true, "clip_qkv": null, "qk_ln": false, "prefix_lm": false}})"},
    {"stablelm-2-1.6b", 1'644'515'328, 1'644'515'328,
     R"({"model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632,
         "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32,
         "vocab_size": 100352, "use_qkv_bias": true, "layer_norm_eps": 1e-5})"},
    {"qwen-7b", 7'721'324'544, 7'721'324'544,
     R"({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
         "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128,
         "seq_length": 8192, "no_bias": true, "vocab_size": 151936})"},
    {"baichuan2-7b", 7'505'973'248, 7'505'973'248,
     R"({"model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 4096,
         "vocab_size": 125696})"},
    {"baichuan2-13b", 13'896'668'160, 13'896'668'160,
     R"({"model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696,
         "num_hidden_layers": 40, "num_attention_heads": 40, "model_max_length": 4096,
         "vocab_size": 125696})"},
    {"chatglm3-6b", 6'243'584'000, 6'243'584'000,
     R"({"model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696,
         "num_layers": 28, "num_attention_heads": 32, "multi_query_attention": true,
         "multi_query_group_num": 2, "kv_channels": 128, "add_qkv_bias": true,
         "padded_vocab_size": 65024, "seq_length": 8192, "rmsnorm": true})"},
    {"internlm3-8b", 8'804'241'408, 8'804'241'408,
     R"({"model_type": "internlm3", "hidden_size": 4096, "intermediate_size": 10240,
         "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 2,
         "head_dim": 128, "vocab_size": 128512})"},
    {"exaone-3.5-7.8b", 7'818'448'896, 7'818'448'896,
     R"({"model_type": "exaone", "hidden_size": 4096, "intermediate_size": 14336,
         "num_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 102400, "activation_function": "silu", "layer_norm_epsilon": 1e-5})"},
    {"exaone-4.0-1.2b", 1'279'391'488, 1'279'391'488,
     R"({"model_type": "exaone4", "hidden_size": 2048, "intermediate_size": 4096,
         "num_hidden_layers": 30, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 64, "vocab_size": 102400, "tie_word_embeddings": true,
         "sliding_window": null, "sliding_window_pattern": null})"},
    {"smollm3-3b", 3'075'098'624, 3'075'098'624,
     R"({"model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008,
         "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
         "vocab_size": 128256, "use_sliding_window": false, "sliding_window": null})"},
    {"seed-oss-36b", 36'151'104'512, 36'151'104'512,
     R"({"model_type": "seed_oss", "hidden_size": 5120, "intermediate_size": 27648,
         "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8,
         "head_dim": 128, "vocab_size": 155136, "attention_bias": true,
         "attention_out_bias": false, "residual_dropout": 0.1, "attention_dropout": 0.1})"},
    {"minicpm-2b", 2'724'880'896, 2'724'880'896,
     R"({"model_type": "minicpm", "hidden_size": 2304, "intermediate_size": 5760,
         "num_hidden_layers": 40, "num_attention_heads": 36, "num_key_value_heads": 36,
         "vocab_size": 122753, "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4})"},
    {"granite-3.0-8b", 8'170'848'256, 8'170'848'256,
     R"({"model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800,
         "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 49155, "tie_word_embeddings": true, "embedding_multiplier": 12.0,
         "logits_scaling": 16.0, "attention_multiplier": 0.0078125,
         "residual_multiplier": 0.22})"},
    {"granite-3.0-1b-a400m", 1'334'628'352, 428'658'688,
     R"({"model_type": "granitemoe", "hidden_size": 1024, "intermediate_size": 512,
         "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8,
         "num_local_experts": 32, "num_experts_per_tok": 8, "vocab_size": 49155,
         "tie_word_embeddings": true})"},
    {"ernie-4.5-21b-a3b", 21'825'436'160, 0,
     R"({"model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288,
         "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
         "vocab_size": 103424, "moe_num_experts": 64, "moe_k": 6,
         "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
         "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1})"},
    {"hunyuan-a13b", 80'393'183'232, 0,
     R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 128, "vocab_size": 128167, "tie_word_embeddings": true,
         "num_experts": 64, "moe_topk": 8, "num_shared_expert":
         [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "moe_intermediate_size": 3072, "use_mixed_mlp_moe": true})"},
    {"dots.llm1", 142'774'373'888, 0,
     R"({"model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944,
         "moe_intermediate_size": 1408, "num_hidden_layers": 62, "num_attention_heads": 32,
         "num_key_value_heads": 32, "vocab_size": 152064, "n_routed_experts": 128,
         "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
         "norm_topk_prob": true, "routed_scaling_factor": 2.5, "max_window_layers": 62})"},
    {"deepseek-moe-16b", 16'375'728'128, 0,
     R"({"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944,
         "moe_intermediate_size": 1408, "num_hidden_layers": 28, "num_attention_heads": 16,
         "num_key_value_heads": 16, "vocab_size": 102400, "n_routed_experts": 64,
         "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
         "moe_layer_freq": 1, "norm_topk_prob": false, "scoring_func": "softmax"})"},
    {"ling-lite-1.5", 16'801'974'272, 0,
     R"({"model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 1408,
         "moe_intermediate_size": 1408, "num_hidden_layers": 28, "num_attention_heads": 16,
         "num_key_value_heads": 4, "vocab_size": 126464, "num_experts": 64,
         "num_shared_experts": 2, "num_experts_per_tok": 6, "norm_topk_prob": true,
         "first_k_dense_replace": 0, "use_bias": false, "use_qkv_bias": false})"},
    {"ling-mini-2.0", 16'255'638'528, 0,
     R"({"model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5120,
         "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 512,
         "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4,
         "head_dim": 128, "vocab_size": 157184, "num_experts": 256, "num_shared_experts": 1,
         "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4, "first_k_dense_replace": 1,
         "score_function": "sigmoid", "moe_router_enable_expert_bias": true,
         "routed_scaling_factor": 2.5, "use_qk_norm": true, "partial_rotary_factor": 0.5})"},
    {"minimax-m2", 228'689'748'992, 0,
     R"({"model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536,
         "num_hidden_layers": 62, "num_attention_heads": 48, "num_key_value_heads": 8,
         "head_dim": 128, "rotary_dim": 64, "vocab_size": 200064, "num_local_experts": 256,
         "num_experts_per_tok": 8, "scoring_func": "sigmoid", "use_routing_bias": true,
         "use_qk_norm": true, "use_mtp": true, "num_mtp_modules": 3})"},
    {"phi-3.5-moe", 41'873'153'344, 0,
     R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 32064, "num_local_experts": 16, "num_experts_per_tok": 2,
         "attention_bias": true, "lm_head_bias": true, "router_jitter_noise": 0.01})"},
};

}  // namespace

TEST_CASE("a published model of every family has the parameter count of its class") {
  for (const Published& one : kPublished) {
    INFO(one.name);
    const Result<ModelSpec> model = parse_model(one.config, "config.json");
    if (!model.ok()) FAIL(to_string(model.error()));
    CHECK(parameter_count(*model) == one.parameters);
    if (one.active > 0) CHECK(active_parameter_count(*model) == one.active);
    CHECK(active_parameter_count(*model) <= one.parameters);
    const Result<ModelSpec> again = parse_model(to_json(*model), "again");
    if (!again.ok()) FAIL(to_string(again.error()));
    CHECK(to_json(*again) == to_json(*model));
  }
}

TEST_CASE("windows and positions follow each family's own rule") {
  const auto read = [](const std::string& keys) {
    const Result<ModelSpec> model =
        parse_model(R"({"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 8,
                        "num_attention_heads": 4, "vocab_size": 100, )" +
                        keys + "}",
                    "config.json");
    if (!model.ok()) FAIL(to_string(model.error()));
    return *model;
  };
  const auto attention = [](const ModelSpec& model, std::int64_t layer) {
    return block_of_kind(model, block_kind(model, layer)).attention;
  };
  const ModelSpec smol = read(R"("model_type": "smollm3")");
  CHECK(attention(smol, 2).position == PositionKind::kRotary);
  CHECK(attention(smol, 3).position == PositionKind::kNone);
  const ModelSpec exaone = read(R"("model_type": "exaone4", "sliding_window": 32,
                                   "sliding_window_pattern": 4)");
  CHECK(attention(exaone, 0).window == 32);
  CHECK(attention(exaone, 0).position == PositionKind::kRotary);
  CHECK(attention(exaone, 3).window == 0);
  CHECK(attention(exaone, 3).position == PositionKind::kNone);
  const ModelSpec cwm = read(R"("model_type": "cwm", "sliding_window": 16)");
  CHECK(attention(cwm, 0).window == 0);
  CHECK(attention(cwm, 1).window == 16);
  const ModelSpec arcee = read(R"("model_type": "arcee", "hidden_act": "relu2")");
  CHECK(arcee.mlp == MlpKind::kReluSquared);
}

TEST_CASE("keys of published files set the rotary fraction and the MTP layers") {
  const auto read = [](const std::string& keys) {
    return parse_model(R"({"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
                           "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, )" +
                           keys + "}",
                       "config.json");
  };
  const auto cohere = read(R"("model_type": "cohere2", "rotary_pct": 1.0)");
  REQUIRE(cohere.ok());
  CHECK(cohere->attention.rotary.fraction == 1);
  const auto ernie = read(R"("model_type": "ernie4_5_moe", "moe_num_experts": 8, "moe_k": 2,
      "moe_intermediate_size": 32, "num_nextn_predict_layers": 1, "moe_capacity": [64, 64, 64])");
  REQUIRE(ernie.ok());
  CHECK(ernie->ends.prediction_layers == 1);
  const auto minimax = read(R"("model_type": "minimax", "num_local_experts": 8,
      "num_experts_per_tok": 2, "head_dim": 16, "rotary_dim": 8, "use_routing_bias": true)");
  REQUIRE(minimax.ok());
  CHECK(minimax->attention.rotary.fraction == 0.5);
  CHECK(minimax->experts.router.correction_bias);
}

TEST_CASE("the language model of a multimodal model is read from any of its keys") {
  const std::string text = R"({"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})";
  for (const std::string key : {"text_config", "llm_config", "language_config"}) {
    const auto model = parse_model(R"({"model_type": "seeing", "vision_config": {"depth": 3}, ")" +
                                       key + R"(": )" + text + "}",
                                   "config.json");
    if (!model.ok()) FAIL(to_string(model.error()));
    CHECK(model->family == "qwen3");
    CHECK(model->notes.size() == 1);
  }
}

TEST_CASE("families with unsupported layers are refused with the layer's name") {
  for (const auto& [type, part] : {std::pair{"jamba", "Mamba-1"}, std::pair{"rwkv", "time mixing"},
                                   std::pair{"afmoe", "gated sliding-window attention"},
                                   std::pair{"falcon_h1", "side by side"}}) {
    const auto model =
        parse_model(R"({"model_type": ")" + std::string(type) + R"("})", "config.json");
    REQUIRE_FALSE(model.ok());
    CHECK_THAT(model.error().message, Catch::Contains(part));
  }
}

}  // namespace tpsim
