// config.json of Hugging Face: both spellings, what is derived, what is refused.
#include <catch2/catch.hpp>

#include "core/model_json.h"

namespace tpsim {
namespace {

ModelSpec read(std::string_view text, const std::string& file = "some-model/config.json") {
  const Result<ModelSpec> model = parse_model(text, file);
  if (!model.ok()) FAIL(to_string(model.error()));
  return *model;
}

Error error_of(std::string_view text) {
  const Result<ModelSpec> model = parse_model(text, "config.json");
  REQUIRE_FALSE(model.ok());
  return model.error();
}

TEST_CASE("bloom is read in both spellings") {
  const ModelSpec old_keys = read(
      R"({"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112,
          "vocab_size": 250880, "n_inner": null, "seq_length": 2048, "unk_token_id": 0,
          "attention_softmax_in_fp32": true, "slow_but_exact": false})");
  const ModelSpec new_keys = read(
      R"({"model_type": "bloom", "hidden_size": 14336, "num_hidden_layers": 70, "n_head": 112,
          "vocab_size": 250880, "apply_residual_connection_post_layernorm": false})");
  for (const ModelSpec& model : {old_keys, new_keys}) {
    CHECK(parameter_count(model) == 176'247'271'424);
    CHECK(model.seq == 2048);
    CHECK(model.attention.head_dim == 128);
    CHECK(model.attention.position == PositionKind::kAlibi);
    CHECK(model.embedding_norm);
    CHECK(model.tied_embedding);
    CHECK(model.name == "some-model");
  }
}

TEST_CASE("gpt2 is read") {
  const ModelSpec model = read(
      R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
          "n_ctx": 1024, "n_inner": null, "vocab_size": 50257, "activation_function": "gelu_new",
          "layer_norm_epsilon": 1e-05, "task_specific_params": {"x": [1, {"y": 2}]}})",
      "gpt2-small.json");
  CHECK(parameter_count(model) == 124'439'808);
  CHECK(model.seq == 1024);
  CHECK(model.ffn_hidden == 3072);
  CHECK(model.attention.position == PositionKind::kLearned);
  CHECK(model.name == "gpt2-small");
}

TEST_CASE("llama is read with grouped heads and scaled rotary embedding") {
  const ModelSpec model = read(
      R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 128256, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
          "max_position_embeddings": 131072, "hidden_act": "silu", "tie_word_embeddings": false,
          "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}})");
  CHECK(parameter_count(model) == 8'030'261'248);
  CHECK(model.seq == 8192);
  CHECK(model.attention.head_dim == 128);
  CHECK(model.attention.rope_theta == 500000.0);
  CHECK(model.norm == NormKind::kRmsNorm);
  CHECK_FALSE(model.fused_qkv);
  CHECK_FALSE(model.linear_bias);
}

TEST_CASE("llama's own head_dim and short contexts are kept") {
  const ModelSpec model = read(
      R"({"model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192,
          "num_hidden_layers": 2, "num_attention_heads": 16, "head_dim": 256,
          "vocab_size": 1000, "max_position_embeddings": 2048})");
  CHECK(model.attention.head_dim == 256);
  CHECK(model.attention.kv_heads == 16);
  CHECK(model.seq == 2048);
}

TEST_CASE("mixtral is a llama with experts") {
  const std::string keys =
      R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 32000, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
          "max_position_embeddings": 32768, "hidden_act": "silu", "num_experts_per_tok": 2,
          "router_aux_loss_coef": 0.02, "sliding_window": null)";
  const ModelSpec model = read(keys + R"(, "num_local_experts": 8})");
  CHECK(model.experts.count == 8);
  CHECK(model.experts.per_token == 2);
  CHECK(parameter_count(model) == 46'702'792'704);
  CHECK(active_parameter_count(model) == 12'879'925'248);
  CHECK_THAT(error_of(keys + "}").message, Catch::Contains("'num_local_experts' is missing"));
  CHECK_THAT(error_of(keys + R"(, "num_local_experts": 1})").message,
             Catch::Contains("2 of 1 experts"));
}

TEST_CASE("an unsupported type names the supported ones") {
  const Error error = error_of(R"({"model_type": "mamba"})");
  CHECK_THAT(error.message, Catch::Contains("'mamba' is not supported"));
  CHECK_THAT(error.hint, Catch::Contains("bloom, gpt2, llama and mixtral"));
  CHECK(error.where == "config.json:1");
}

TEST_CASE("known keys are checked although unknown ones are not") {
  CHECK_THAT(error_of(R"({"model_type": "gpt2", "n_embd": "768"})").message,
             Catch::Contains("n_embd must be a whole number"));
  CHECK_THAT(error_of(R"({"model_type": "bloom", "n_layer": 2, "hidden_size": 8})").message,
             Catch::Contains("'n_head' is missing"));
  CHECK_THAT(error_of(R"({"model_type": "bloom", "n_layer": 2, "n_embed": 10, "n_head": 3,
                          "vocab_size": 10})")
                 .message,
             Catch::Contains("10 does not divide by 3 heads"));
  CHECK_THAT(error_of(R"({"model_type": 3})").message, Catch::Contains("must be a text"));
}

TEST_CASE("what a ModelSpec cannot express is refused") {
  const std::string llama =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
          "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, )";
  CHECK_THAT(error_of(llama + R"("hidden_act": "gelu"})").message,
             Catch::Contains("unknown activation 'gelu'"));
  CHECK_THAT(error_of(llama + R"("attention_bias": true})").message,
             Catch::Contains("attention or the MLP alone"));
}

}  // namespace
}  // namespace tpsim
