// Configurations of axolotl, TRL and LLaMA-Factory with adapters.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {
namespace {

ImportInputs on(std::int64_t gpus) {
  const Catalogue catalogue = Catalogue::open().value();
  ImportInputs all;
  all.gpus = gpus;
  all.load = [catalogue](const std::string& name) { return catalogue.load_model(name); };
  return all;
}

Error refused(const Result<ImportedPlan>& plan) {
  REQUIRE_FALSE(plan.ok());
  return plan.error();
}

ImportedPlan read(Result<ImportedPlan> plan) {
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

}  // namespace

TEST_CASE("settings of an adapter that is not trained are ignored") {
  const auto with = [](const std::string& text) {
    return import_config({"sft.yaml", text + "lora_r: 8\nlora_alpha: 16\nbf16: true\n"}, on(8));
  };
  const std::string axolotl = "base_model: llama-2-7b\nmicro_batch_size: 2\nsequence_len: 2048\n";
  const std::string factory =
      "model_name_or_path: llama-2-7b\nper_device_train_batch_size: 2\nstage: sft\n";
  for (const std::string& text :
       {axolotl, axolotl + "adapter:\n", axolotl + "adapter: null\n",
        factory + "finetuning_type: full\n", factory + "use_peft: false\n",
        factory + "peft: None\n", factory + "adapter: none\n"}) {
    INFO(text);
    const ImportedPlan plan = read(with(text));
    CHECK(plan.plan.micro_batch == 2);
    CHECK(std::count(plan.outside.begin(), plan.outside.end(), "lora_r") == 1);
  }
  for (const std::string& text :
       {axolotl + "adapter: llama-adapter\n", factory + "use_peft: true\nuse_dora: true\n",
        factory + "finetuning_type: freeze\n", factory, factory + "use_peft: maybe\n",
        axolotl + "use_lora: maybe\n"}) {
    INFO(text);
    CHECK_THAT(refused(with(text)).message, Catch::Contains("lora_r: 8"));
  }
}

TEST_CASE("layers and modules that a configuration trains are planned") {
  const auto axolotl = [](const std::string& patterns) {
    return import_config({"sft.yml",
                          "base_model: llama-2-7b\nmicro_batch_size: 2\nsequence_len: 2048\nbf16: "
                          "true\nunfrozen_parameters:\n" +
                              patterns},
                         on(8));
  };
  const auto part = [](const ImportedPlan& plan, StackPart which) {
    const auto found = plan.parts.find(which);
    return found == plan.parts.end() ? "" : text_of(row_of(which), found->second);
  };
  const ImportedPlan last = read(axolotl("  - model.layers.3[01].mlp\n  - ^lm_head.weight$\n"));
  CHECK(part(last, StackPart::kFinetune) == "freeze");
  CHECK(part(last, StackPart::kTrainedParts) == "gate_proj,up_proj,down_proj,head");
  CHECK(part(last, StackPart::kTrainedLayers) == "2");
  const ImportedPlan first = read(axolotl("  - model.layers.[0-3].self_attn.[qk]_proj\n"));
  CHECK(part(first, StackPart::kTrainedParts) == "q_proj,k_proj");
  CHECK(part(first, StackPart::kTrainedLayers) == "-4");
  // Spectrum trains other modules in each layer.
  const ImportedPlan mixed =
      read(axolotl("  - model.layers.7.mlp.down_proj\n  - model.layers.20.self_attn.v_proj\n"));
  CHECK(mixed.model.layers == 32);
  CHECK(block_kind_count(mixed.model) == 3);
  const ImportedPlan tables = read(axolotl("  - model.layers.\n  - model.norm\n  - lm_head\n"));
  CHECK(part(tables, StackPart::kTrainedLayers) == "");
  CHECK_THAT(refused(axolotl("  - model.layer.3.mlp\n")).message,
             Catch::Contains("unfrozen_parameters trains no weight"));
  CHECK_THAT(refused(axolotl("  - model.layers.[3.mlp\n")).message,
             Catch::Contains("is not a regular expression"));

  const auto factory = [](const std::string& text) {
    return import_config({"freeze.yaml",
                          "model_name_or_path: llama-2-7b\nstage: sft\nfinetuning_type: freeze\n"
                          "per_device_train_batch_size: 2\nbf16: true\n" +
                              text},
                         on(8));
  };
  CHECK(part(read(factory("")), StackPart::kTrainedLayers) == "2");
  const ImportedPlan chosen =
      read(factory("freeze_trainable_layers: -8\nfreeze_trainable_modules: mlp,self_attn.o_proj\n"
                   "freeze_extra_modules: embed_tokens,lm_head\n"));
  CHECK(part(chosen, StackPart::kTrainedLayers) == "-8");
  CHECK(part(chosen, StackPart::kTrainedParts) ==
        "o_proj,gate_proj,up_proj,down_proj,embedding,head");
}

TEST_CASE("weights in host memory are planned") {
  const std::string trainer =
      "model_name_or_path: llama-2-7b\nper_device_train_batch_size: 2\nbf16: true\n";
  for (const std::string& text :
       {std::string("fsdp: full_shard auto_wrap offload\n"),
        std::string("fsdp: full_shard\nfsdp_config:\n  fsdp_offload_params: true\n"),
        std::string("fsdp_version: 2\nfsdp_config:\n  offload_params: true\n"),
        std::string("deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n"
                    "  offload_param_device: cpu\n")}) {
    INFO(text);
    const ImportedPlan plan = read(import_config({"sft.yaml", trainer + text}, on(8)));
    CHECK(plan.plan.offload == Offload::kParameters);
    CHECK(plan.plan.zero == 3);
  }
  CHECK_THAT(refused(import_config({"sft.yaml", trainer + "deepspeed_config:\n  zero_stage: 2\n"
                                                          "  offload_param_device: cpu\n"},
                                   on(8)))
                 .message,
             Catch::Contains("offload_param_device is cpu without zero_stage 3"));
}

TEST_CASE("adapters of axolotl, TRL and LLaMA-Factory are planned") {
  const std::string axolotl =
      "base_model: llama-2-7b\nmicro_batch_size: 2\nsequence_len: 2048\nbf16: true\n";
  const std::string factory =
      "model_name_or_path: llama-2-7b\nper_device_train_batch_size: 2\nbf16: true\n";
  const auto part = [](const ImportedPlan& plan, StackPart which) {
    return text_of(row_of(which), plan.parts.at(which));
  };
  const ImportedPlan qlora = read(import_config(
      {"qlora.yml", axolotl + "adapter: qlora\nload_in_4bit: true\nlora_r: 32\nlora_alpha: 16\n"
                              "lora_dropout: 0.05\nlora_target_linear: true\n"
                              "lora_modules_to_save:\n  - embed_tokens\n  - lm_head\n"},
      on(8)));
  CHECK(part(qlora, StackPart::kFinetune) == "qlora");
  CHECK(part(qlora, StackPart::kBaseDtype) == "nf4");
  CHECK(part(qlora, StackPart::kLoraRank) == "32");
  CHECK(part(qlora, StackPart::kLoraDropout) == "5");
  CHECK(part(qlora, StackPart::kLoraTargets) == "all-linear");
  CHECK(part(qlora, StackPart::kTrainedParts) == "embedding,head");
  for (const char* unset : {"", "adapter:\n"}) {
    const ImportedPlan trl = read(import_config(
        {"trl.yml",
         factory + unset + "use_peft: true\nlora_target_modules:\n  - q_proj\n  - v_proj\n"},
        on(8)));
    CHECK(part(trl, StackPart::kFinetune) == "lora");
    CHECK(part(trl, StackPart::kLoraRank) == "16");
    CHECK(part(trl, StackPart::kLoraTargets) == "q_proj,v_proj");
  }
  const ImportedPlan own = read(import_config(
      {"own.yml", axolotl + "use_lora: true\nlora_r: 4\nlora_target_modules: [q_proj]\n"}, on(8)));
  CHECK(part(own, StackPart::kFinetune) == "lora");
  CHECK(part(own, StackPart::kLoraRank) == "4");
  const ImportedPlan tuned = read(
      import_config({"factory.yml", factory + "stage: sft\nfinetuning_type: lora\nlora_rank: 8\n"
                                              "lora_target: all\nquantization_bit: 8\n"},
                    on(8)));
  CHECK(part(tuned, StackPart::kFinetune) == "qlora");
  CHECK(part(tuned, StackPart::kBaseDtype) == "int8");
  CHECK(part(tuned, StackPart::kLoraTargets) == "all-linear");
  CHECK(tuned.plan.recompute == Recompute::kFull);
  for (const char* share : {"abc", "1.5", "-0.1"}) {
    const LaunchFile file{"qlora.yml",
                          axolotl + "adapter: lora\nlora_r: 8\nlora_dropout: " + share};
    CHECK_THAT(refused(import_config(file, on(8))).message,
               Catch::Contains(std::string("lora_dropout is '") + share));
  }
}

TEST_CASE("torchtune's adapters are in all listed attention modules") {
  const std::string recipe =
      "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_rank: 8\n"
      "tokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  max_seq_len: 2048\n"
      "batch_size: 2\ngradient_accumulation_steps: 8\ndtype: bf16\n";
  const auto targets = [&](const std::string& modules) {
    const ImportedPlan plan = read(
        import_config({"lora.yaml", recipe + "model.lora_attn_modules:" + modules + "\n"}, on(8)));
    return text_of(row_of(StackPart::kLoraTargets), plan.parts.at(StackPart::kLoraTargets));
  };
  CHECK(targets("\n- q_proj\n- v_proj\n- output_proj") == "q_proj,v_proj,o_proj");
  CHECK(targets(" \"['q_proj','k_proj']\"") == "q_proj,k_proj");
  CHECK(targets(" [v_proj]\nmodel.apply_lora_to_mlp: true") ==
        "v_proj,gate_proj,up_proj,down_proj");
}

}  // namespace tpsim
