// Families of 2025 and 2026 with layers that are planned but not trained: indexers, compressed
// keys, delta nets, layers of several widths, encoders. Sizes are those of each config.json.
// Parameter counts are those of the published safetensors files, or follow from the class.
#include <catch2/catch.hpp>
#include <string>

#include "core/model/model_json.h"
#include "core/model/model_support.h"

namespace tpsim {
namespace {

ModelSpec read(const std::string& config) {
  const auto model = parse_model(config, "config.json");
  if (!model.ok()) FAIL(to_string(model.error()));
  return *model;
}

// Parameters without the MTP layers.
std::int64_t main_parameters(ModelSpec model) {
  model.ends.prediction_layers = 0;
  return parameter_count(model);
}

// A list of `count` numbers: the first `first` are `before`, the others `behind`.
std::string numbers(std::int64_t count, std::int64_t first, int before, int behind) {
  std::string text = "[";
  for (std::int64_t i = 0; i < count; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(i < first ? before : behind);
  }
  return text + "]";
}

const std::string kDeepSeek = R"("hidden_size": 7168, "intermediate_size": 18432,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "vocab_size": 129280, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
    "n_group": 8, "topk_group": 4, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid", "topk_method": "noaux_tc")";

const std::string kIndexer = R"("index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048)";

const std::string kQwen35 = R"("model_type": "qwen3_5_text", "hidden_size": 5120,
    "intermediate_size": 17408, "num_hidden_layers": 64, "num_attention_heads": 24,
    "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 248320, "attn_output_gate": true,
    "linear_num_value_heads": 48, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
    "mtp_num_hidden_layers": 1, "rope_parameters": {"rope_type": "default",
    "rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]})";

TEST_CASE("DeepSeek-V3.2 is V3 with an indexer in every layer") {
  const ModelSpec model =
      read(R"({"model_type": "deepseek_v32", )" + kDeepSeek + ", " + kIndexer + "}");
  const std::int64_t indexer = 64 * 128 * 1536 + 128 * 7168 + 2 * 128 + 64 * 7168;
  CHECK(main_parameters(model) == 671'026'404'352 + 61 * indexer);
  // A query attends to 2048 positions, and the indexer scores all positions.
  ModelSpec v3 = read(R"({"model_type": "deepseek_v3", )" + kDeepSeek + "}");
  v3.seq = 32768;
  ModelSpec seen = model;
  seen.seq = v3.seq;
  const BlockFlops full = block_forward_flops(v3), sparse = block_forward_flops(seen);
  CHECK(sparse.attention_core < full.attention_core * 2 * 2048 / 32768);
  CHECK(sparse.indexer == Approx(2.0 * 32768 * 32768 * 64 * 128));
}

TEST_CASE("layers that share an indexer's choice have no indexer") {
  const std::string types = R"("indexer_types": ["full", "shared", "full"])";
  std::string three = kDeepSeek;
  three.replace(three.find("61"), 2, "3");
  const ModelSpec model =
      read(R"({"model_type": "glm_moe_dsa", )" + three + ", " + kIndexer + ", " + types + "}");
  CHECK(block_of_kind(model, block_kind(model, 1)).planned.empty());
  CHECK(block_of_kind(model, block_kind(model, 1)).attention.chosen == 2048);
  CHECK(block_of_kind(model, block_kind(model, 2)).planned.size() == 4);
}

TEST_CASE("Qwen3.5 and its encoder have the parameters of the published files") {
  const std::string vision = R"("vision_config": {"depth": 27, "hidden_size": 1152,
      "intermediate_size": 4304, "num_heads": 16, "num_position_embeddings": 2304,
      "out_hidden_size": 5120, "patch_size": 16, "spatial_merge_size": 2,
      "temporal_patch_size": 2, "in_channels": 3, "deepstack_visual_indexes": []})";
  const ModelSpec model =
      read(R"({"model_type": "qwen3_5", "text_config": {)" + kQwen35 + "}, " + vision + "}");
  // The Hub counts 27,781,427,952 parameters, 424,699,392 of them in the MTP layer.
  CHECK(main_parameters(model) == 27'781'427'952 - 424'699'392);
  CHECK(model.attention.rotary.fraction == 0.25);
  CHECK(model.ends.prediction_layers == 1);
  REQUIRE(model.ends.parts.size() == 1);
  CHECK(planned_parameters(model.ends.parts[0]) == 460'730'096);
  CHECK(model.notes.size() == 1);
}

TEST_CASE("Qwen3-VL has the parameters of the published files, deep mergers among them") {
  const std::string text = R"("text_config": {"model_type": "qwen3_vl_text", "hidden_size": 2560,
      "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
      "tie_word_embeddings": true})";
  const std::string vision = R"("vision_config": {"depth": 24, "hidden_size": 1024,
      "intermediate_size": 4096, "num_heads": 16, "num_position_embeddings": 2304,
      "out_hidden_size": 2560, "patch_size": 16, "spatial_merge_size": 2,
      "temporal_patch_size": 2, "in_channels": 3, "deepstack_visual_indexes": [5, 11, 17]})";
  CHECK(parameter_count(read(R"({"model_type": "qwen3_vl", )" + text + ", " + vision + "}")) ==
        4'437'815'808);
}

TEST_CASE("layers of an architecture search have their own widths, or lack a part") {
  const std::string blocks = R"("block_configs": [
      {"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 5.25}},
      {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 1.3125}},
      {"attention": {"n_heads_in_group": 16, "no_op": false}, "ffn": {"no_op": true}}])";
  const ModelSpec model = read(R"({"model_type": "nemotron-nas", "hidden_size": 8192,
      "num_hidden_layers": 3, "num_attention_heads": 64, "num_key_value_heads": null,
      "intermediate_size": null, "vocab_size": 128256, )" +
                               blocks + "}");
  const BlockShape first = block_of_kind(model, block_kind(model, 0));
  CHECK(first.ffn_hidden == 28672);
  CHECK(first.attention.kv_heads == 8);
  const BlockShape second = block_of_kind(model, block_kind(model, 1));
  CHECK(second.mixer == MixerKind::kNone);
  CHECK(second.ffn_hidden == 7168);
  const BlockShape third = block_of_kind(model, block_kind(model, 2));
  CHECK(third.ffn_hidden == 0);
  CHECK(third.attention.kv_heads == 4);
}

TEST_CASE("DeepSeek-V4 has planned mixers of three kinds and four residual streams") {
  const ModelSpec model = read(R"({"model_type": "deepseek_v4", "hidden_size": 4096,
      "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 1,
      "head_dim": 512, "vocab_size": 129280, "q_lora_rank": 1024, "o_lora_rank": 1024,
      "o_groups": 8, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 6,
      "moe_intermediate_size": 2048, "hc_mult": 4, "sliding_window": 128, "index_n_heads": 64,
      "index_head_dim": 128, "index_topk": 512, "compress_ratios": [0, 4, 128, 4, 0]})");
  CHECK(model.ends.streams == 4);
  CHECK(block_kind_count(model) == 3);
  const std::int64_t h = 4096, width = 64 * 512;
  const std::int64_t attention =
      h * 1024 + 1024 + 1024 * width + h * 512 + 512 + 64 + 8 * 1024 * (width / 8) + 8 * 1024 * h;
  const std::int64_t streams = 2 * (24 * 4 * h + 24 + 3);
  const std::int64_t wide = 2 * h * 1024 + 4 * 1024 + 512, narrow = 2 * h * 512 + 128 * 512 + 512;
  const std::int64_t indexer = 64 * 128 * 1024 + 2 * h * 256 + 4 * 256 + 128 + 64 * h;
  const std::int64_t experts = 257 * 3 * h * 2048 + 256 * h;
  const std::int64_t ends = 2 * 129280 * h + h + 4 * 4 * h + 5;
  CHECK(parameter_count(model) ==
        4 * (attention + streams + experts + 2 * h) + 2 * (wide + indexer) + narrow + ends);
}

TEST_CASE("Gemma 4's full layers have one matrix for keys and values") {
  const ModelSpec model = read(R"({"model_type": "gemma4_text", "hidden_size": 2816,
      "intermediate_size": 2112, "num_hidden_layers": 6, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 256, "global_head_dim": 512,
      "num_global_key_value_heads": 2, "attention_k_eq_v": true, "vocab_size": 262144,
      "enable_moe_block": true, "num_experts": 128, "top_k_experts": 8,
      "moe_intermediate_size": 704, "sliding_window": 1024, "rope_parameters": {
      "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0,
      "partial_rotary_factor": 0.25}, "sliding_attention": {"rope_theta": 10000.0}}})");
  const std::int64_t h = 2816;
  const std::int64_t local = h * 256 * (16 + 2 * 8 + 16) + 2 * 256;
  const std::int64_t global = h * 512 * (16 + 2 + 16) + 2 * 512;
  const std::int64_t experts = 128 * 3 * h * 704 + 128 * h + h + 128 + 3 * h * 2112;
  CHECK(parameter_count(model) == 262144 * h + h + 5 * local + global + 6 * (experts + 7 * h));
  CHECK(block_of_kind(model, block_kind(model, 5)).attention.rope_theta == 1e6);
}

TEST_CASE("Kimi's delta attention has a decay of every channel by a low rank") {
  const ModelSpec model = read(R"({"model_type": "kimi_linear", "hidden_size": 2304,
      "intermediate_size": 9216, "num_hidden_layers": 4, "num_attention_heads": 32,
      "num_key_value_heads": 32, "head_dim": 72, "vocab_size": 163840, "kv_lora_rank": 512,
      "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "mla_use_nope": true, "num_experts": 256, "num_experts_per_token": 8,
      "num_shared_experts": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1,
      "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "num_heads": 32,
      "head_dim": 128, "short_conv_kernel_size": 4}})");
  const std::int64_t h = 2304, width = 32 * 128;
  const std::int64_t delta = 3 * h * width + 3 * width * 4 + 32 + h * 128 + 128 * width + width +
                             h * 32 + h * 128 + 128 * width + 128 + width * h;
  const std::int64_t attention =
      h * 32 * 192 + h * (512 + 64) + 512 + 512 * 32 * 256 + 32 * 128 * h;
  const std::int64_t experts = 257 * 3 * h * 1024 + 256 * h;
  CHECK(parameter_count(model) ==
        2 * 163840 * h + h + 8 * h + 3 * delta + attention + 3 * experts + 3 * h * 9216);
}

TEST_CASE("keys with the value that a model has anyway are ignored, others are refused by value") {
  const auto qwen = [](const std::string& key) {
    return parse_model(R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 100, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, )" +
                           key + "}",
                       "config.json");
  };
  for (const char* key :
       {R"("use_qk_norm": true)", R"("partial_rotary_factor": 1.0)", R"("qkv_bias": false)",
        R"("n_group": 1)", R"("use_moe": true)", R"("rotary_pct": 1)",
        R"("residual_multiplier": 1.0)", R"("layer_types": ["full_attention", "full_attention"])",
        R"("n_routed_experts": 4)", R"("rope_scaling": {"type": "default"})"}) {
    CAPTURE(key);
    CHECK(qwen(key).ok());
  }
  for (const auto& [key, said] :
       {std::pair{R"("use_qk_norm": false, "qk_norm": "x")", "qk_norm"},
        std::pair{R"("rotary_pct": 0.5)", "rotary_pct = 0.5"},
        std::pair{R"("n_routed_experts": 8)", "n_routed_experts = 8"},
        std::pair{R"("attn_res_block_size": 12)", "attn_res_block_size = 12"},
        std::pair{R"("hc_mult": 4)", "hc_mult = 4"}}) {
    CAPTURE(key);
    const auto model = qwen(key);
    REQUIRE_FALSE(model.ok());
    CHECK_THAT(model.error().message, Catch::Contains(said));
  }
}

TEST_CASE("transformers 5 names the number of Qwen's experts num_local_experts") {
  const auto model = parse_model(R"({"model_type": "qwen3_moe", "hidden_size": 64,
      "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32})",
                                 "config.json");
  REQUIRE(model.ok());
  CHECK(model->experts.count == 4);
}

TEST_CASE("Nemotron's layers are read as letters and as words") {
  const std::string sizes = R"({"model_type": "nemotron_h", "hidden_size": 64,
      "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "vocab_size": 100, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2,
      "ssm_state_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "partial_rotary_factor": 1.0, )";
  const ModelSpec letters =
      read(sizes + R"("num_hidden_layers": 4, "hybrid_override_pattern": "ME*-"})");
  const ModelSpec words =
      read(sizes + R"("layers_block_type": ["mamba", "moe", "attention", "mlp"]})");
  CHECK(words.layers == 4);
  CHECK(words.block_kinds == letters.block_kinds);
  CHECK(parameter_count(words) == parameter_count(letters));
  const auto wrong = parse_model(sizes + R"("layers_block_type": ["mamba", "rwkv"]})", "c.json");
  REQUIRE_FALSE(wrong.ok());
  CHECK_THAT(wrong.error().message, Catch::Contains("'rwkv'"));
}

TEST_CASE("MiMo-V2's layers with a window have heads and sinks of their own") {
  const ModelSpec model = read(R"({"model_type": "mimo_v2_flash", "hidden_size": 4096,
      "intermediate_size": 16384, "num_hidden_layers": 3, "num_attention_heads": 64,
      "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "vocab_size": 152576,
      "swa_num_key_value_heads": 8, "swa_num_attention_heads": 64, "swa_head_dim": 192,
      "swa_v_head_dim": 128, "sliding_window": 128, "add_swa_attention_sink_bias": true,
      "partial_rotary_factor": 0.334, "n_routed_experts": 256, "num_experts_per_tok": 8,
      "moe_intermediate_size": 2048, "n_shared_experts": null, "scoring_func": "sigmoid",
      "topk_method": "noaux_tc", "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": )" +
                               numbers(3, 1, 0, 1) + "}");
  const std::int64_t h = 4096;
  const auto attention = [&](std::int64_t kv) {
    return h * (64 * 192 + kv * (192 + 128)) + 64 * 128 * h;
  };
  const std::int64_t experts = 256 * 3 * h * 2048 + 256 * h;
  CHECK(parameter_count(model) == 2 * 152576 * h + h + 6 * h + attention(4) +
                                      2 * (attention(8) + 64) + 3 * h * 16384 + 2 * experts);
}

TEST_CASE("the closed form of a planned op's pairs equals a loop over its queries") {
  for (const std::int64_t seq : {1, 7, 64, 130}) {
    for (const std::int64_t window : {0, 1, 16, 500}) {
      for (const std::int64_t stride : {0, 1, 4, 128}) {
        for (const std::int64_t most : {0, 1, 9}) {
          PlannedOp op;
          op.window = window;
          op.stride = stride;
          op.most = most;
          double sum = 0;
          for (std::int64_t n = 1; n <= seq; ++n) {
            const std::int64_t far = stride > 0 ? n / stride : 0;
            sum +=
                static_cast<double>(std::min(n, window) + (most > 0 ? std::min(far, most) : far));
          }
          CAPTURE(seq, window, stride, most);
          CHECK(planned_pairs(op, seq) == sum);
        }
      }
    }
  }
}

TEST_CASE("models with planned parts are planned and not trained, with the part in the message") {
  const ModelSpec sparse =
      read(R"({"model_type": "deepseek_v32", )" + kDeepSeek + ", " + kIndexer + "}");
  CHECK(check_plannable(sparse).ok());
  const Status trained = check_trainable(sparse);
  REQUIRE_FALSE(trained.ok());
  CHECK_THAT(trained.error().message, Catch::Contains("with an indexer"));
  const ModelSpec apertus = read(R"({"model_type": "apertus", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 100, "hidden_act": "xielu", "qk_norm": true})");
  CHECK(main_parameters(apertus) ==
        2 * 100 * 64 + 64 + 2 * (64 * 64 * 2 + 2 * 64 * 32 + 2 * 16 + 2 * 64 * 128 + 2 + 2 * 64));
  CHECK_THAT(check_trainable(apertus).error().message, Catch::Contains("xIELU"));
}

TEST_CASE("planned parts are unchanged by a model file") {
  const ModelSpec model = read(R"({"model_type": "qwen3_5", "text_config": {)" + kQwen35 +
                               R"(}, "vision_config": {"depth": 2, "hidden_size": 32,
      "intermediate_size": 64, "num_heads": 4, "num_position_embeddings": 64,
      "out_hidden_size": 5120}})");
  const auto again = parse_model(to_json(model), "model.json");
  if (!again.ok()) FAIL(to_string(again.error()));
  CHECK(again->ends == model.ends);
  CHECK(parameter_count(*again) == parameter_count(model));
  CHECK(model_flops_per_step(*again, 8).value() == model_flops_per_step(model, 8).value());
}

TEST_CASE("Hy3 has one dense layer, a norm per head and sigmoid scores") {
  const std::string sizes = R"("model_type": "hy_v3", "vocab_size": 120832, "hidden_size": 4096,
      "intermediate_size": 13312, "moe_intermediate_size": 1536, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 192,
      "num_experts_per_tok": 8)";
  const ModelSpec model = read("{" + sizes + "}");
  CHECK(parameter_count(model) == Approx(295e9).epsilon(0.001));
  CHECK(block_of_kind(model, block_kind(model, 0)).experts.count == 0);
  CHECK(block_of_kind(model, block_kind(model, 1)).experts.count == 192);
  CHECK(model.experts.router.scaling == 2.826);
  CHECK(model.attention.qk_norm == QkNorm::kHead);
  // The same numbers as a file of DeepSeek's keys.
  const ModelSpec glm = read("{" + sizes.substr(0, sizes.find("hy_v3")) + "glm4_moe" +
                             sizes.substr(sizes.find("hy_v3") + 5,
                                          sizes.find("\"num_experts\"") - sizes.find("hy_v3") - 5) +
                             R"("n_routed_experts": 192, "num_experts_per_tok": 8,
      "n_shared_experts": 1, "first_k_dense_replace": 1, "use_qk_norm": true})");
  CHECK(parameter_count(glm) == parameter_count(model));
}

}  // namespace
}  // namespace tpsim
