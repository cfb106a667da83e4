// Configurations of OLMo-core as tpsim_recipes prints them.
#include <catch2/catch.hpp>

#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

// A small model of OLMo 2's kind: norms after the branches, norms of q and k over all heads.
constexpr const char* kRecipe = R"({
  "tpsim_recipe": {"framework": "olmo-core", "function": "", "defaults": ["model.init_method"]},
  "_target_": "olmo_core.script_utils.ExperimentConfig",
  "model": {"_target_": "olmo_core.nn.transformer.config.TransformerConfig",
    "d_model": 1024, "vocab_size": 50304, "n_layers": 8, "name": "default", "init_method": "normal",
    "block": {"_target_": "olmo_core.nn.transformer.config.TransformerBlockConfig",
      "name": "reordered_norm",
      "sequence_mixer": {"_target_": "olmo_core.nn.attention.AttentionConfig", "n_heads": 16,
        "n_kv_heads": 4, "bias": false, "sliding_window": null,
        "qk_norm": {"_target_": "olmo_core.nn.layer_norm.LayerNormConfig", "name": "rms"},
        "rope": {"_target_": "olmo_core.nn.rope.RoPEConfig", "theta": 500000}},
      "layer_norm": {"_target_": "olmo_core.nn.layer_norm.LayerNormConfig", "name": "rms",
        "eps": 1e-06, "bias": false},
      "feed_forward": {"_target_": "olmo_core.nn.feed_forward.FeedForwardConfig",
        "hidden_size": 4096, "bias": false}},
    "lm_head": {"_target_": "olmo_core.nn.lm_head.LMHeadConfig", "bias": false,
      "loss_implementation": "default"}},
  "dataset": {"_target_": "olmo_core.data.NumpyFSLDatasetConfig", "sequence_length": 2048},
  "data_loader": {"_target_": "olmo_core.data.NumpyDataLoaderConfig", "global_batch_size": 524288},
  "train_module": {
    "_target_": "olmo_core.train.train_module.transformer.config.TransformerTrainModuleConfig",
    "rank_microbatch_size": 8192, "max_sequence_length": 4096, "compile_model": true,
    "optim": {"_target_": "olmo_core.optim.adamw.SkipStepAdamWConfig", "lr": 0.001},
    "dp_config": {"_target_": "olmo_core.train.TransformerDataParallelConfig", "name": "hsdp",
      "param_dtype": "bfloat16", "reduce_dtype": "float32", "num_replicas": null,
      "shard_degree": null},
    "ac_config": null, "cp_config": null, "z_loss_multiplier": null},
  "trainer": {"_target_": "olmo_core.train.TrainerConfig", "save_folder": "/tmp"}
})";

// Returns the recipe with each text `from` replaced by `to`.
std::string changed(std::initializer_list<std::pair<const char*, const char*>> changes) {
  std::string text = kRecipe;
  for (const auto& [from, to] : changes)
    text.replace(text.find(from), std::string(from).size(), to);
  return text;
}

Result<ImportedPlan> imported(const std::string& text, std::int64_t gpus = 32) {
  ImportInputs inputs;
  inputs.gpus = gpus;
  return import_config({"recipe.json", text}, inputs);
}

std::string error_of(const Result<ImportedPlan>& read) {
  REQUIRE(!read.ok());
  return to_string(read.error());
}

}  // namespace

TEST_CASE("a configuration of OLMo-core gives its model, and batches in sequences") {
  const auto read = imported(kRecipe);
  REQUIRE(read.ok());
  const ModelSpec& model = read->model;
  CHECK(model.norm_place == NormPlace::kAfter);
  CHECK(model.attention.qk_norm == QkNorm::kWidth);
  CHECK(model.attention.head_dim == 64);
  CHECK(model.attention.kv_heads == 4);
  CHECK(model.attention.rope_theta == 500000);
  CHECK_FALSE(model.tied_embedding);
  CHECK(model.seq == 2048);  // of the data, which may be shorter than the module's longest
  // Weights as OLMo-core counts them: attention with its norms, MLP, two norms, ends.
  const std::int64_t attention = 1024 * 1024 * 2 + 2 * 1024 * 256 + 1024 + 256;
  CHECK(parameter_count(model) ==
        8 * (attention + 3 * 1024 * 4096 + 2 * 1024) + 2 * 50304 * 1024 + 1024);
  CHECK(read->plan.micro_batch == 4);
  CHECK(read->plan.global_batch == 256);
  CHECK(read->plan.dtype == DType::kBFloat16);
  CHECK(read->plan.recompute == Recompute::kNone);
  CHECK(read->stack == "olmo-core");
  CHECK(read->parts.at(StackPart::kCompile) == 1);
  CHECK(read->parts.at(StackPart::kOptimizerKernel) ==
        static_cast<std::int64_t>(KernelFusion::kTorch));
}

TEST_CASE("HSDP of OLMo-core shards over a node unless the configuration states the groups") {
  const auto node = imported(kRecipe);
  REQUIRE(node.ok());
  CHECK(node->plan.zero == 3);
  CHECK(node->parts.at(StackPart::kShardGroup) == kShardOverNode);
  const auto replicas = imported(changed({{R"("num_replicas": null)", R"("num_replicas": 2)"}}));
  const auto shards = imported(changed({{R"("shard_degree": null)", R"("shard_degree": 16)"}}));
  REQUIRE(replicas.ok());
  REQUIRE(shards.ok());
  CHECK(replicas->parts.at(StackPart::kShardGroup) == 16);
  CHECK(shards->parts == replicas->parts);  // two ways to state one layout
  const auto fsdp = imported(changed({{R"("name": "hsdp")", R"("name": "fsdp")"}}));
  REQUIRE(fsdp.ok());
  CHECK_FALSE(fsdp->parts.contains(StackPart::kShardGroup));
  const auto ddp = imported(changed({{R"("name": "hsdp")", R"("name": "ddp")"}}));
  REQUIRE(ddp.ok());
  CHECK(ddp->plan.zero == 0);
  CHECK_THAT(error_of(imported(changed({{R"("shard_degree": null)", R"("shard_degree": 12)"}}))),
             Catch::Contains("do not divide the 32 data-parallel ranks"));
  CHECK_THAT(error_of(imported(changed({{R"("num_replicas": null)", R"("num_replicas": 0)"}}))),
             Catch::Contains("add --gpus N"));
}

TEST_CASE("a pattern of windows starts behind a first layer with full attention") {
  const auto read = imported(changed({{R"("sliding_window": null)", R"("sliding_window": {
    "_target_": "olmo_core.nn.attention.SlidingWindowAttentionConfig",
    "pattern": [512, 512, -1], "force_full_attention_on_first_layer": true,
    "force_full_attention_on_last_layer": true})"}}));
  REQUIRE(read.ok());
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < 8; ++layer) {
    windows.push_back(block_of_kind(read->model, block_kind(read->model, layer)).attention.window);
  }
  CHECK(windows == std::vector<std::int64_t>{0, 512, 512, 0, 512, 512, 0, 0});
}

TEST_CASE("OLMo-core's activation checkpointing of modules and blocks is read") {
  const char* const none = R"("ac_config": null)";
  const auto with_mode = [&](const char* mode) { return imported(changed({{none, mode}})); };
  const auto modules = with_mode(R"("ac_config": {"_target_": "x.AcConfig",
    "mode": "selected_modules", "modules": ["blocks.*.feed_forward"]})");
  REQUIRE(modules.ok());
  CHECK(modules->plan.recompute == Recompute::kSelective);
  CHECK(modules->parts.at(StackPart::kRecomputeModules) == bit(RecomputeModule::kMlp));
  const auto blocks = with_mode(R"("ac_config": {"_target_": "x.AcConfig",
    "mode": "selected_blocks", "block_interval": 3})");
  REQUIRE(blocks.ok());
  CHECK(blocks->plan.recompute_blocks == 3);  // layers 0, 3 and 6
  const auto budget = with_mode(R"("ac_config": {"_target_": "x.AcConfig", "mode": "budget",
    "activation_memory_budget": 0.1})");
  REQUIRE(budget.ok());
  CHECK(budget->plan.recompute == Recompute::kFull);
  REQUIRE(budget->notes.size() == 1);
  CHECK_THAT(budget->notes.front(), Catch::Contains("activation_memory_budget 0.1"));
}

TEST_CASE("settings of OLMo-core that tpsim does not model are refused or unknown by name") {
  CHECK_THAT(error_of(imported(changed({{R"("lr": 0.001)", R"("lr": 0.001)"},
                                        {"adamw.SkipStepAdamWConfig", "lion.LionConfig"}}))),
             Catch::Contains("tpsim models AdamW, also with moments"));
  CHECK_THAT(error_of(imported(changed({{R"("name": "default")", R"("name": "normalized")"}}))),
             Catch::Contains("nGPT is not modelled"));
  CHECK_THAT(error_of(imported(changed({{R"("compile_model")", R"("odd": 3, "compile_model")"}}))),
             Catch::Contains("train_module.odd"));
  CHECK_THAT(error_of(imported(kRecipe, 0)), Catch::Contains("--gpus N"));
}

}  // namespace tpsim
