// Programs with settings that are translated for another reader: their files give the stated plans.
#include "frameworks/launch/programs.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/base/text.h"
#include "tests/frameworks/launch/program_files.h"

namespace tpsim {

TEST_CASE("ms-swift's commands give plans of the Trainer or of Megatron") {
  const ImportedPlan sft = plan_of("swift_sft.sh");
  CHECK(sft.stack == "deepspeed-zero3");
  CHECK(sft.model.name == "qwen2.5-7b");
  CHECK(sft.model.seq == 4096);
  CHECK(sft.plan.degrees.dp == 4);
  CHECK(sft.plan.zero == 3);
  CHECK(sft.plan.global_batch == 64);
  CHECK(sft.plan.recompute == Recompute::kFull);  // ms-swift's default
  const ImportedPlan megatron = plan_of("swift_megatron.sh");
  CHECK(megatron.stack == "megatron-core");
  CHECK(megatron.plan.degrees.tp == 4);
  CHECK(megatron.plan.degrees.dp == 4);
  CHECK(megatron.plan.zero == 1);  // ms-swift's default
  CHECK(megatron.plan.recompute == Recompute::kSelective);
  CHECK(megatron.model.attention_dropout == 0);
  const ImportedPlan pairs = plan_of("swift_dpo.sh");
  CHECK(pairs.plan.micro_batch == 2);
  CHECK(pairs.plan.global_batch == 32);
  CHECK(pairs.plan.offload == Offload::kOptimizer);
}

TEST_CASE("ms-swift trains LoRA by default, and other tuners are refused in one sentence") {
  const ImportedPlan plan = plan_of("swift_lora.sh", beside(8));
  const auto part = [&](StackPart which) { return text_of(row_of(which), plan.parts.at(which)); };
  CHECK(part(StackPart::kFinetune) == "lora");
  CHECK(part(StackPart::kLoraRank) == "8");
  CHECK(part(StackPart::kLoraDropout) == "5");
  const auto trainer = import_text("lora.yaml",
                                   "model_name_or_path: of-nobody\nfinetuning_type: oft\n"
                                   "lora_rank: 8\nlora_target: all\nof_next_year: 3\n",
                                   beside());
  REQUIRE_FALSE(trainer.ok());
  CHECK_THAT(trainer.error().message,
             Catch::StartsWith("trains adapters or a part of the weights: ") &&
                 Catch::Contains("lora_rank: 8") && !Catch::Contains("of_next_year"));
}

TEST_CASE("verl's actor is planned and its other models are named") {
  const ImportedPlan fsdp = plan_of("verl_fsdp.sh");
  CHECK(fsdp.stack == "pytorch-fsdp");
  CHECK(fsdp.plan.degrees.dp == 16);
  CHECK(fsdp.plan.zero == 3);
  CHECK(fsdp.model.seq == 4096);
  CHECK(fsdp.plan.micro_batch == 2);
  CHECK(fsdp.plan.global_batch == 256);
  CHECK(says(fsdp, "generation, rewards"));
  CHECK_FALSE(says(fsdp, "critic"));
  const ImportedPlan megatron = plan_of("verl_megatron.sh");
  CHECK(megatron.plan.degrees.tp == 2);
  CHECK(megatron.plan.degrees.pp == 2);
  CHECK(megatron.plan.degrees.dp == 2);
  CHECK(megatron.plan.micro_batch == 4);  // 8192 tokens / sequences of 2048
  CHECK(megatron.plan.recompute == Recompute::kFull);
  CHECK(megatron.plan.sequence_parallel);
  CHECK(says(megatron, "a critic is trained too"));
  CHECK(megatron.stack == "megatron-core");
  const ImportedPlan encoder = plan_of(
      "verl_megatron.sh", beside(0, {{"actor_rollout_ref.model.path", "Qwen/Qwen3-VL-30B-A3B"}}));
  CHECK(encoder.stack == "nemo");  // Megatron-LM's arguments have no encoders
  const ImportedPlan sft = plan_of("verl_sft.sh", beside(0, {{"1", "4"}}));
  CHECK(sft.plan.degrees.dp == 4);
  CHECK(sft.plan.global_batch == 64);
}

TEST_CASE("OpenRLHF's command is read from a here-document") {
  const ImportedPlan plan = plan_of("openrlhf.sh", beside(8));
  CHECK(plan.stack == "deepspeed-zero3");
  CHECK(plan.plan.zero == 2);
  CHECK(plan.plan.micro_batch == 2);
  CHECK(plan.plan.global_batch == 64);
  CHECK(plan.model.name == "llama-3-8b");
}

TEST_CASE("slime's model is read from a sourced file") {
  const ImportedPlan plan = plan_of("slime.sh");
  CHECK(plan.model.layers == 36);
  CHECK(plan.model.seq == 4096);
  CHECK(plan.plan.degrees.tp == 2);
  CHECK(plan.plan.sequence_parallel);
  CHECK(plan.plan.zero == 1);
  CHECK(plan.plan.micro_batch == 2);
  CHECK(plan.plan.global_batch == 256);
  std::string text = read_file(kFiles / "slime.sh", 1 << 20).value();
  const std::string sourced = "models/words-8b.sh";
  text.replace(text.find(sourced), sourced.size(), "models/none.sh");
  const auto missing = import_text("slime.sh", text, beside());
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.error().message, Catch::Contains("none.sh"));
}

TEST_CASE("Primus presets that are missing are replaced by the catalogue and defaults") {
  const ImportedPlan plan = plan_of("primus.yaml", beside(8));
  CHECK(plan.model.name == "llama-3.1-8b");
  CHECK(plan.model.seq == 8192);
  CHECK(plan.plan.degrees.tp == 2);
  CHECK(plan.plan.zero == 1);
  CHECK(plan.plan.global_batch == 64);
  CHECK(says(plan, "primus/configs/models/megatron/llama3.1_8B.yaml"));
}

TEST_CASE("Primus writes a default after the variable's name") {
  std::string text = read_file(kFiles / "primus.yaml", 1 << 20).value();
  text.replace(text.find("llama3.1_8B.yaml"), 16, "${PRIMUS_MODEL:llama3.1_8B}.yaml");
  const auto plan = import_text("primus.yaml", text, beside(8));
  REQUIRE(plan.ok());
  CHECK(plan->model.name == "llama-3.1-8b");
  const auto other = import_text("primus.yaml", text, beside(8, {{"PRIMUS_MODEL", "llama2_7B"}}));
  REQUIRE(other.ok());
  CHECK(other->model.name == "llama-2-7b");
}

TEST_CASE("GPT-NeoX's YAML states its model, with parallel branches") {
  const ImportedPlan plan = plan_of("neox.yml", beside(16));
  CHECK(plan.stack == "gpt-neox");
  CHECK(plan.plan.degrees.tp == 2);
  CHECK(plan.plan.degrees.pp == 2);
  CHECK(plan.plan.degrees.dp == 4);
  CHECK(plan.plan.global_batch == 128);
  CHECK(plan.plan.dtype == DType::kFloat16);
  CHECK(plan.plan.recompute == Recompute::kFull);
  CHECK(plan.model.norm_place == NormPlace::kTwoParallel);
  CHECK(plan.model.attention.rotary.fraction == 0.25);
  CHECK(plan.model.vocab == 50277);
  const auto open = import_named("neox.yml", beside());
  REQUIRE_FALSE(open.ok());
  CHECK(open.error().hint == "add --gpus N");
}

TEST_CASE("torchtune's weights have no fp32 copy") {
  const ImportedPlan plan = plan_of("torchtune.yaml", beside(8));
  CHECK(plan.model.name == "llama-3.1-8b");
  CHECK(plan.plan.zero == 3);
  CHECK(plan.plan.global_batch == 64);
  CHECK(plan.plan.gradient_dtype == DType::kBFloat16);
  CHECK(plan.parts.at(StackPart::kOptimizerDtype) == static_cast<std::int64_t>(DType::kBFloat16));
  CHECK(plan.parts.at(StackPart::kMasterWeights) ==
        static_cast<std::int64_t>(MasterWeights::kNone));
  std::string lora = read_file(kFiles / "torchtune.yaml", 1 << 20).value();
  lora.replace(lora.find("llama3_1_8b"), 0, "lora_");
  lora += "\nmodel.lora_rank: 8\nmodel.apply_lora_to_mlp: true\n";
  const auto tuned = import_text("torchtune.yaml", lora, beside(8));
  REQUIRE(tuned.ok());
  CHECK(tuned->parts.at(StackPart::kFinetune) == static_cast<std::int64_t>(FinetuneMethod::kLora));
  CHECK(tuned->parts.at(StackPart::kLoraTargets) == kMlpWeights);
}

TEST_CASE("MLPerf's submissions are variables of the environment") {
  const ImportedPlan plan = plan_of("mlperf.sh");
  CHECK(plan.model.name == "llama-3.1-405b");
  CHECK(plan.model.seq == 8192);
  CHECK(plan.plan.degrees.tp == 8);
  CHECK(plan.plan.degrees.cp == 2);
  CHECK(plan.plan.degrees.dp == 4);
  CHECK(plan.plan.virtual_stages == 8);
  CHECK(plan.plan.global_batch == 256);
  CHECK(plan.plan.gradient_dtype == DType::kBFloat16);
}

TEST_CASE("LLaMA-Factory over Megatron and torchtitan's registry are read") {
  const ImportedPlan factory = plan_of("factory_megatron.yaml", beside(8));
  CHECK(factory.plan.degrees.tp == 2);
  CHECK(factory.plan.degrees.dp == 2);
  CHECK(factory.plan.global_batch == 16);
  const ImportedPlan titan = plan_of("torchtitan.sh");
  CHECK(titan.model.name == "llama-3-8b");
  CHECK(titan.plan.degrees.dp == 8);
  CHECK(titan.model.seq == 8192);
  const auto other = import_named("torchtitan.sh", beside(0, {{"CONFIG", "llama3_of_mine"}}));
  REQUIRE_FALSE(other.ok());
  CHECK_THAT(other.error().message, Catch::Contains("llama3_of_mine"));
}

TEST_CASE("a template that a script fills in by sed is DeepSpeed's configuration") {
  const ImportedPlan plan = plan_of("deepspeed_template.sh");
  CHECK(plan.plan.zero == 1);
  CHECK(plan.plan.micro_batch == 2);
  CHECK(plan.plan.global_batch == 64);
}

TEST_CASE("missing arguments of a script are named and can be given at once") {
  const auto open = import_named("arguments.sh", beside());
  REQUIRE_FALSE(open.ok());
  CHECK_THAT(open.error().hint, Catch::Contains("--set '@=MODEL BATCH TP'"));
  const ImportedPlan plan = plan_of("arguments.sh", beside(8, {{"@", "small 2 4"}}));
  CHECK(plan.model.layers == 8);
  CHECK(plan.plan.degrees.tp == 4);
  CHECK(plan.plan.micro_batch == 2);
}

TEST_CASE("a value of --set overrides every assignment of a script") {
  // The script sets GPUS_PER_NODE from a program's output, MODEL from an argument, LAYERS in a
  // branch, and micro as a number.
  const ImportedPlan printed =
      plan_of("arguments.sh", beside(0, {{"@", "small 2 4"}, {"GPUS_PER_NODE", "8"}}));
  CHECK(printed.plan.degrees.dp == 2);
  const ImportedPlan branch =
      plan_of("arguments.sh", beside(8, {{"@", "small 2 4"}, {"LAYERS", "4"}}));
  CHECK(branch.model.layers == 4);
  CHECK(plan_of("deepspeed_template.sh", beside(0, {{"micro", "4"}})).plan.micro_batch == 4);
  CHECK(plan_of("verl_fsdp.sh", beside(0, {{"n", "2"}})).plan.global_batch == 128);
  CHECK(plan_of("verl_fsdp.sh", beside(0, {{"trainer.nnodes", "4"}})).plan.degrees.dp == 32);
  CHECK(plan_of("swift_megatron.sh", beside(0, {{"tensor_model_parallel_size", "2"}}))
            .plan.degrees.tp == 2);
  CHECK(plan_of("swift_megatron.sh", beside(0, {{"tensor-model-parallel-size", "2"}}))
            .plan.degrees.tp == 2);
}

TEST_CASE("trl's and accelerate's command lines accept the settings of files") {
  const auto trl = import_text("trl.sh",
                               "trl dpo --model_name_or_path meta-llama/Llama-3.1-8B "
                               "--per_device_train_batch_size 2 --accelerate_config zero3\n",
                               beside(8));
  REQUIRE(trl.ok());
  CHECK(trl->stack == "deepspeed-zero3");
  CHECK(trl->plan.zero == 3);
  CHECK(trl->plan.micro_batch == 4);               // pairs of sequences
  CHECK(trl->plan.recompute == Recompute::kFull);  // trl's default
  CHECK(trl->plan.dtype == DType::kBFloat16);
  CHECK(trl->model.seq == 1024);
  const auto accelerate = import_text(
      "accelerate.sh",
      "accelerate launch --num_processes 4 --mixed_precision bf16 --use_fsdp "
      "--fsdp_sharding_strategy SHARD_GRAD_OP train.py --model_name_or_path llama-3.1-8b "
      "--per_device_train_batch_size 1 --max_seq_length 2048\n",
      beside());
  REQUIRE(accelerate.ok());
  CHECK(accelerate->stack == "pytorch-fsdp");
  CHECK(accelerate->plan.zero == 2);
  CHECK(accelerate->plan.degrees.dp == 4);
  CHECK(accelerate->plan.dtype == DType::kBFloat16);
}

TEST_CASE("tune run and deepy.py name their configurations") {
  const auto tune = import_text("tune.sh",
                                "tune run --nproc_per_node 4 full_finetune_distributed "
                                "--config torchtune.yaml batch_size=1\n",
                                beside());
  REQUIRE(tune.ok());
  CHECK(tune->plan.degrees.dp == 4);
  CHECK(tune->plan.micro_batch == 1);
  const auto missing = import_text(
      "tune.sh", "tune run full_finetune_single_device --config llama3/8B_full\n", beside());
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.error().message, Catch::Contains("llama3/8B_full"));
  const auto neox = import_text("neox.sh", "python ./deepy.py train.py -d . neox.yml\n", beside(4));
  REQUIRE(neox.ok());
  CHECK(neox->plan.degrees.tp == 2);
}

TEST_CASE("NeMo AutoModel's YAML is read by its table") {
  const std::string text =
      "recipe: TrainFinetuneRecipeForNextTokenPrediction\n"
      "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 8\n"
      "model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
      "  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\n"
      "distributed:\n  strategy: fsdp2\n  dp_size: none\n  tp_size: 1\n  cp_size: 1\n"
      "  activation_checkpointing: true\n"
      "dataset:\n  _target_: nemo_automodel.components.datasets.llm.squad.make_squad_dataset\n"
      "optimizer:\n  _target_: torch.optim.Adam\n  lr: 1.0e-5\n";
  const std::string lengthy = text + "packed_sequence:\n  packed_sequence_size: 4096\n";
  const auto plan = import_text("run.yaml", lengthy, beside(8));
  if (!plan.ok()) FAIL(to_string(plan.error()));
  CHECK(plan->plan.degrees.dp == 8);
  CHECK(plan->plan.zero == 3);
  CHECK(plan->plan.global_batch == 64);
  CHECK(plan->plan.micro_batch == 8);
  CHECK(plan->plan.recompute == Recompute::kFull);
  CHECK(plan->model.seq == 4096);
  const auto adapted = import_text("run.yaml", lengthy + "peft:\n  dim: 16\n", beside(8));
  REQUIRE(adapted.ok());
  CHECK(adapted->parts.at(StackPart::kLoraRank) == 16);
  const auto open = import_text("run.yaml", text, beside(8));
  REQUIRE_FALSE(open.ok());
  CHECK_THAT(open.error().message, Catch::Contains("sequence length"));
  std::string stages = lengthy;
  stages.replace(stages.find("  cp_size: 1"), 12, "  pp_size: 2");
  const auto refused = import_text("run.yaml", stages, beside(8));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("pp_size: 2"));
}

TEST_CASE("VeOmni's YAML is read by a table alone") {
  const std::string text =
      "model:\n  model_path: Qwen/Qwen3-8B\ndata:\n  max_seq_len: 4096\n"
      "train:\n  micro_batch_size: 2\n  global_batch_size: 64\n"
      "  accelerator:\n    ulysses_size: 2\n    fsdp_config:\n      fsdp_mode: fsdp2\n"
      "  gradient_checkpointing:\n    enable: false\n";
  const auto plan = import_text("run.yaml", text, beside(16));
  if (!plan.ok()) FAIL(to_string(plan.error()));
  CHECK(plan->plan.degrees == ParallelDegrees{.dp = 8, .cp = 2});
  CHECK(plan->plan.zero == 3);
  CHECK(plan->plan.micro_batch == 2);
  CHECK(plan->plan.global_batch == 64);
  CHECK(plan->plan.recompute == Recompute::kNone);
  CHECK(plan->model.seq == 4096);
  std::string experts = text;
  experts.replace(experts.find("    ulysses_size: 2"), 19, "    ep_size: 8");
  const auto refused = import_text("run.yaml", experts, beside(16));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("ep_size: 8"));
}

TEST_CASE("an unsupported program is named") {
  const auto plan = import_text("mine.sh",
                                "torchrun --nproc_per_node 8 scripts/mine.py --run_name words "
                                "--global_batch_size 64 --of_mine 3\n",
                                beside());
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message == "the command starts scripts/mine.py, which tpsim cannot read");
}

TEST_CASE("every row of a program's table has an effect") {
  for (const TrainingProgram& one : all_programs()) {
    INFO(one.name);
    CHECK_FALSE((one.commands.empty() && one.file_keys.empty()));
    for (const std::string& stated : words_in(one.defaults)) {
      INFO(stated);
      CHECK_THAT(stated, Catch::Matches("[^=]+=.+"));
    }
    for (const ProgramSetting& row : one.facts.rows) {
      CHECK_FALSE((row.key.empty() || row.becomes.empty()));
    }
  }
}

TEST_CASE("FlagScale's sections hold Megatron's arguments, and an experiment selects a file") {
  const std::string train = read_file(kFiles / "train/flagscale.yaml", 1 << 20).value();
  const auto alone = import_text("train.yaml", train, beside(64));
  if (!alone.ok()) FAIL(to_string(alone.error()));
  CHECK(alone->plan.degrees == ParallelDegrees{.tp = 4, .pp = 2, .dp = 8});
  CHECK(alone->model.ffn_hidden == 11008);  // 256 x ceil(8 / 3 x 4096 / 256)
  CHECK(alone->model.vocab == 32000);
  const auto experiment = import_text(
      "experiment.yaml",
      "defaults:\n  - _self_\n  - train: flagscale\nexperiment:\n  exp_name: x\n  task:\n"
      "    type: train\n    backend: megatron\n  runner:\n    nnodes: 8\n    nproc_per_node: 8\n"
      "  envs:\n    PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True\n",
      beside());
  if (!experiment.ok()) FAIL(to_string(experiment.error()));
  CHECK(experiment->plan == alone->plan);
  CHECK(experiment->parts.at(StackPart::kExpandableSegments) == 1);
}

}  // namespace tpsim
