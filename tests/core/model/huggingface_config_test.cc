// config.json of Hugging Face: both spellings, derived values, and refused values.
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/model/model_json.h"
#include "core/model/model_support.h"

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
    CHECK(model.activation_ops == ActivationOps::kFunctionOps);
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
  CHECK(model.activation_ops == ActivationOps::kSavedOps);
  CHECK(model.name == "gpt2-small");
}

TEST_CASE("a sequence beyond the learned positions adds rows to their table") {
  ModelSpec model = read(
      R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
          "vocab_size": 50257, "activation_function": "gelu_new"})");
  const std::int64_t few = parameter_count(model);
  model.seq = 512;
  CHECK(parameter_count(model) == few);
  model.seq = 4096;
  CHECK(parameter_count(model) == few + (4096 - 1024) * 768);
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
  CHECK(model.context == 131072);
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
             Catch::Contains("2 experts per token"));
}

TEST_CASE("an unsupported type names the supported ones") {
  const Error error = error_of(R"({"model_type": "mamba"})");
  CHECK_THAT(error.message, Catch::Contains("'mamba' is not supported"));
  CHECK_THAT(error.hint, Catch::Contains("llama, llama4_text, mimo"));
  CHECK(error.where == "config.json:1");
}

TEST_CASE("known keys are checked although unknown ones are not") {
  CHECK_THAT(error_of(R"({"model_type": "gpt2", "n_embd": "768"})").message,
             Catch::Contains("n_embd must be a whole number"));
  CHECK_THAT(error_of(R"({"model_type": "bloom", "n_layer": 2, "hidden_size": 8})").message,
             Catch::Contains("the keys 'n_head', 'vocab_size' are missing"));
  CHECK_THAT(error_of(R"({"model_type": "bloom", "n_layer": 2, "n_embed": 10, "n_head": 3,
                          "vocab_size": 10})")
                 .message,
             Catch::Contains("10 is not divisible by 3 heads"));
  CHECK_THAT(error_of(R"({"model_type": 3})").message, Catch::Contains("must be a text"));
}

TEST_CASE("keys that a ModelSpec cannot express are refused") {
  const std::string llama =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
          "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, )";
  CHECK_THAT(error_of(llama + R"("hidden_act": "gelu"})").message,
             Catch::Contains("unknown activation 'gelu'"));
  CHECK_THAT(
      error_of(llama + R"("num_local_experts": 8})").message,
      Catch::Contains("num_local_experts: tpsim cannot read llama models with num_local_experts"));
  CHECK_THAT(error_of(llama + R"("rope_scaling": {"rope_type": "odd", "factor": 2}})").message,
             Catch::Contains("rotary scaling 'odd' is not supported"));
  CHECK(read(llama + R"("attention_bias": true})").attention.output_bias);
}

struct Counted {
  const char* file;
  std::int64_t parameters, active;
};
// Sources of files and numbers: tests/core/model/configs/README.md.
constexpr Counted kCounted[] = {
    {"llama-3.1-8b.json", 8'030'261'248, 8'030'261'248},
    {"llama-3.1-405b.json", 405'853'388'800, 405'853'388'800},
    {"llama-4-maverick.json", 400'711'848'960, 17'184'691'200},
    {"mistral-7b-v0.1.json", 7'241'732'096, 7'241'732'096},
    {"mixtral-8x7b.json", 46'702'792'704, 12'879'925'248},
    {"mixtral-8x22b.json", 140'620'634'112, 39'152'031'744},
    {"qwen2.5-7b.json", 7'615'616'512, 7'615'616'512},
    {"qwen3-8b.json", 8'190'735'360, 8'190'735'360},
    {"qwen3-30b-a3b.json", 30'532'122'624, 3'353'032'704},
    {"qwen3-235b-a22b.json", 235'093'634'560, 22'190'763'520},
    {"qwen3-next-80b-a3b.json", 79'674'391'296, 3'874'929'408},
    {"deepseek-v2-lite.json", 15'706'484'224, 2'661'150'208},
    {"deepseek-v3.json", 671'026'404'352, 37'552'282'624},
    {"deepseek-r1.json", 671'026'404'352, 37'552'282'624},
    {"kimi-k2.json", 1'026'408'209'408, 32'861'477'888},
    {"glm-4.5.json", 352'797'814'784, 33'632'251'904},
    {"gpt-oss-20b.json", 20'914'757'184, 4'187'440'704},
    {"gpt-oss-120b.json", 116'829'156'672, 5'711'982'912},
    {"gemma-2-27b.json", 27'227'128'320, 27'227'128'320},
    {"gemma-3-27b-text.json", 27'009'346'304, 27'009'346'304},
    {"phi-3-mini-4k.json", 3'821'079'552, 3'821'079'552},
    {"starcoder2-15b.json", 15'957'889'024, 15'957'889'024},
    {"nemotron-h-8b.json", 8'100'852'736, 8'100'852'736},
    {"nemotron-h-56b.json", 56'324'350'464, 56'324'350'464},
};

TEST_CASE("public models have the parameter counts of their publishers") {
  const std::filesystem::path folder =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/core/model/configs";
  for (const Counted& one : kCounted) {
    INFO(one.file);
    Result<ModelSpec> model = read_model(folder / one.file);
    if (!model.ok()) FAIL(to_string(model.error()));
    // The counts are those of the language model, without MTP layers and encoders.
    const bool has_more = model->ends.prediction_layers > 0 || !model->ends.parts.empty();
    CHECK((parameter_count(*model) > one.parameters) == has_more);
    model->ends.prediction_layers = 0;
    model->ends.parts.clear();
    CHECK(parameter_count(*model) == one.parameters);
    CHECK(active_parameter_count(*model) == one.active);
    const Result<ModelSpec> again = parse_model(to_json(*model), "again");
    if (!again.ok()) FAIL(to_string(again.error()));
    CHECK(to_json(*again) == to_json(*model));
  }
}

TEST_CASE("a config.json has the sequence of the catalogue's entry, of at most 8,192 tokens") {
  const std::filesystem::path root(TPSIM_SOURCE_DIR);
  for (const Counted& one : kCounted) {
    CAPTURE(one.file);
    const ModelSpec model = read_model(root / "tests/core/model/configs" / one.file).value();
    CHECK(model.seq <= 8192);
    const std::filesystem::path entry = root / "data/models" / one.file;
    if (std::filesystem::exists(entry)) CHECK(model.seq == read_model(entry).value().seq);
  }
  for (const auto& file : std::filesystem::directory_iterator(root / "data/models")) {
    CAPTURE(file.path());
    CHECK(read_model(file.path()).value().seq <= 8192);
  }
}

TEST_CASE("hybrids can be planned, and training them is refused by name") {
  const std::filesystem::path folder =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/core/model/configs";
  for (const auto& [file, part] : {std::pair{"nemotron-h-8b.json", "Mamba-2 layers"},
                                   std::pair{"qwen3-next-80b-a3b.json", "gated delta nets"}}) {
    const ModelSpec model = read_model(folder / file).value();
    CHECK(check_plannable(model).ok());
    const Status trained = check_trainable(model);
    REQUIRE_FALSE(trained.ok());
    CHECK(trained.error().kind == ErrorKind::kMissing);
    CHECK_THAT(trained.error().message, Catch::Contains(part));
  }
}

TEST_CASE("granite's hybrids have a mixer and experts in every block") {
  const std::string keys = R"({"model_type": "granitemoehybrid", "hidden_size": 64,
      "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 100, "position_embedding_type": "nope",
      "num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 48,
      "mamba_n_heads": 8, "mamba_d_state": 16, "mamba_expand": 2, "logits_scaling": 4,
      "residual_multiplier": 0.5, "layer_types": ["mamba", "attention", "mamba"]})";
  const ModelSpec model = read(keys);
  CHECK(layers_of_kind(model, 0) + layers_of_kind(model, 1) == 3);
  CHECK(has_recurrences(model));
  CHECK(model.experts.shared_ffn == 48);
  CHECK(model.ends.logit_scale == 0.25);
  CHECK(model.attention.position == PositionKind::kNone);
  std::string wrong = keys;
  wrong.replace(wrong.find("\"mamba_n_heads\": 8"), 18, "\"mamba_n_heads\": 9");
  CHECK_THAT(error_of(wrong).message, Catch::Contains("mamba_n_heads"));
}

}  // namespace
}  // namespace tpsim
