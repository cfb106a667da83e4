// Scripts of forks and of programs with settings of their own: each plan has the values of the
// script, or a refusal names the setting.
#include <catch2/catch.hpp>

#include "tests/frameworks/launch/program_files.h"

namespace tpsim {
namespace {

Result<ImportedPlan> read(const std::string& text, std::int64_t gpus = 0,
                          std::map<std::string, std::string> files = {}) {
  ImportInputs inputs = beside(gpus);
  inputs.open = [files](const std::string& name) -> Result<std::string> {
    const auto found = files.find(name.substr(name.rfind('/') + 1));
    if (found == files.end()) return bad_input("does not exist", name);
    return found->second;
  };
  return import_text("run.sh", text, inputs);
}

ImportedPlan plan_in(const std::string& text, std::int64_t gpus = 0,
                     std::map<std::string, std::string> files = {}) {
  Result<ImportedPlan> plan = read(text, gpus, std::move(files));
  INFO(text);
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

std::string refusal_of(const std::string& text, std::int64_t gpus = 0) {
  const Result<ImportedPlan> plan = read(text, gpus);
  INFO(text);
  REQUIRE_FALSE(plan.ok());
  return to_string(plan.error());
}

const std::string kMegatron =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --vocab-size "
    "50304 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 4 --global-batch-size 64 --bf16 ";
const std::string kTrainer =
    "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 "
    "--per_device_train_batch_size 1 ";

std::int64_t part(const ImportedPlan& plan, StackPart one) {
  const auto found = plan.parts.find(one);
  return found == plan.parts.end() ? -1 : found->second;
}

}  // namespace

TEST_CASE("experts of MegaBlocks' fork of Megatron-LM are not left out") {
  const std::string experts = "--moe-num-experts=64 --moe-top-k=1 --moe-loss-weight=0.1 ";
  const ImportedPlan plan =
      plan_in(kMegatron + experts + "--moe-expert-model-parallelism --optimizer adafactor");
  CHECK(plan.model.experts.count == 64);
  CHECK(plan.model.experts.per_token == 1);
  CHECK(plan.model.experts.dropless);
  CHECK(plan.plan.degrees.ep == 8);
  CHECK(part(plan, StackPart::kOptimizerKind) ==
        static_cast<std::int64_t>(OptimizerKind::kAdafactor));
  CHECK_FALSE(
      plan_in(kMegatron + experts + "--moe-expert-model-parallelism --moe-capacity-factor=1")
          .model.experts.dropless);
  CHECK_THAT(refusal_of(kMegatron + "--moe-routed-experts 64"),
             Catch::Contains("--moe-routed-experts"));
}

TEST_CASE("a recompute method of 2021 recomputes whole layers") {
  const ImportedPlan plan = plan_in(kMegatron + "--activations-checkpoint-method uniform");
  CHECK(plan.plan.recompute == Recompute::kFull);
}

TEST_CASE("Megatron-LLaMA's names are read, and Yuan's attention is refused") {
  const ImportedPlan plan = plan_in(kMegatron + "--RMSNorm --overlapped-distributed-optimizer");
  CHECK(plan.plan.zero == 1);
  CHECK(part(plan, StackPart::kOverlapGradientReduction) == 1);
  CHECK(part(plan, StackPart::kOverlapParameterGather) == 1);
  CHECK_THAT(refusal_of(kMegatron + "--use-lf-gate --lf-conv2d-group 1"),
             Catch::Contains("localized filtering"));
}

TEST_CASE("programs that call peft on their own train LoRA") {
  const ImportedPlan plan =
      plan_in(kTrainer + "--lora_rank 64 --trainable q_proj,v_proj --modules_to_save lm_head");
  CHECK(part(plan, StackPart::kFinetune) == static_cast<std::int64_t>(FinetuneMethod::kLora));
  CHECK(part(plan, StackPart::kLoraRank) == 64);
  CHECK(part(plan, StackPart::kTrainedParts) == part_bit(WeightPart::kHead));
  const ImportedPlan narrow =
      plan_in(kTrainer +
              "--use_peft_lora True --lora_r 8 --use_4bit_quantization True "
              "--lora_target_modules all-linear");
  CHECK(part(narrow, StackPart::kFinetune) == static_cast<std::int64_t>(FinetuneMethod::kQlora));
  CHECK_THAT(refusal_of(kTrainer + "--use_lora True"), Catch::Contains("in which modules"));
  CHECK(part(plan_in(kTrainer + "--use_lora False --lora_r 8"), StackPart::kFinetune) == -1);
}

TEST_CASE("a length that the command omits is the program's default") {
  const std::string fields = "class A:\n    model_max_length: int = field(\n        default=512,\n";
  const ImportedPlan plan = plan_in(kTrainer, 0, {{"train.py", fields}});
  CHECK(plan.model.seq == 512);
  CHECK(says(plan, "defaults in train.py: model_max_length"));
  const std::string more = "class A:\n    gradient_checkpointing: bool = field(default=True)\n";
  CHECK(plan_in(kTrainer, 0, {{"train.py", more}}).plan.recompute == Recompute::kFull);
  const std::string none =
      "class A:\n    block_size: Optional[int] = None\n    a: int = 5\n"
      "p.add_argument('--gradient_checkpointing', action='x')\np.add_argument('--a', default=1)";
  const ImportedPlan open = plan_in(kTrainer, 0, {{"train.py", none}});
  CHECK(open.model.seq > 5);
  CHECK(open.plan.recompute == Recompute::kNone);
  const std::string option = "add('--max_seq_length', type=int, default=1024)";
  CHECK(plan_in(kTrainer, 0, {{"train.py", option}}).model.seq == 1024);
  CHECK(plan_in(kTrainer + "--block_size 256", 0, {{"train.py", option}}).model.seq == 256);
  CHECK(plan_in(kTrainer + "--source_max_len 16 --target_max_len 512").model.seq == 528);
}

TEST_CASE("torchrun's options may be abbreviated") {
  const std::string more = "torchrun --nnode=4 " + kTrainer.substr(kTrainer.find(' '));
  CHECK(plan_in(more).plan.degrees.dp == 32);
}

TEST_CASE("DeepSpeed offloads weights at stage 3 only") {
  const std::string json =
      R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},)"
      R"( "offload_param": {"device": "cpu"}}, "min_lr": 5e-7})";
  const ImportedPlan plan = plan_in(kTrainer + "--deepspeed ds.json", 0, {{"ds.json", json}});
  CHECK(plan.plan.zero == 2);
  CHECK(plan.plan.offload == Offload::kOptimizer);
}

TEST_CASE("a script that converts or samples has one training") {
  const ImportedPlan plan = plan_in("python tools/convert.py --input a --output b\n" + kMegatron);
  CHECK(plan.plan.global_batch == 64);
  CHECK_THAT(refusal_of("python tools/convert.py --input a\n" + kTrainer + "--splits a\n" +
                        kTrainer + "--max_length 128 --splits b"),
             Catch::Contains("--command"));
}

TEST_CASE("sizes and mechanisms of a program's own model are named") {
  CHECK_THAT(refusal_of(kTrainer + "--hidden_size 6400"), Catch::Contains("--model FILE"));
  CHECK_THAT(refusal_of(kTrainer + "--use_cla"), Catch::Contains("layers share"));
  CHECK_THAT(refusal_of(kTrainer + "--use_unsloth True"), Catch::Contains("Unsloth"));
}

TEST_CASE("settings in Hydra's form are not lost") {
  CHECK_THAT(refusal_of("accelerate launch --num_processes 4 tune.py model.batch=32 "
                        "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1"),
             Catch::Contains("model.batch"));
}

TEST_CASE("HALOs' batch counts all ranks") {
  const std::string command =
      "accelerate launch --num_processes 4 launch.py loss=LOSS model=qwen exp_name=a "
      "++model.name_or_path=Qwen/Qwen2.5-7B ++model.batch_size=32";
  std::string kto = command, dpo = command;
  kto.replace(kto.find("LOSS"), 4, "kto");
  dpo.replace(dpo.find("LOSS"), 4, "dpo");
  const ImportedPlan plan = plan_in(kto, 4);
  CHECK(plan.plan.micro_batch == 8);
  CHECK(plan.plan.global_batch == 32);
  CHECK(plan.model.seq == 1250);
  CHECK(plan_in(dpo, 4).plan.micro_batch == 16);
}

TEST_CASE("EasyR1's configuration and overrides are read") {
  const std::string yaml =
      "data:\n  max_prompt_length: 1024\n  max_response_length: 1024\nworker:\n  actor:\n"
      "    global_batch_size: 128\n    micro_batch_size_per_device_for_update: 2\n"
      "    ulysses_size: 1\n  rollout:\n    n: 5\ntrainer:\n  nnodes: 1\n  n_gpus_per_node: 8\n";
  const std::string command =
      "python3 -m verl.trainer.main config=config.yaml "
      "worker.actor.model.model_path=Qwen/Qwen2.5-7B ";
  const ImportedPlan plan = plan_in(command, 0, {{"config.yaml", yaml}});
  CHECK(plan.model.seq == 2048);
  CHECK(plan.plan.global_batch == 640);
  CHECK(plan.plan.micro_batch == 2);
  CHECK(plan.plan.degrees.dp == 8);
  CHECK(plan.plan.recompute == Recompute::kFull);
  const ImportedPlan narrow = plan_in(command +
                                          "worker.actor.optim.strategy=adamw_bf16 "
                                          "worker.actor.fsdp.torch_dtype=bf16 "
                                          "worker.actor.model.lora.rank=64",
                                      0, {{"config.yaml", yaml}});
  CHECK(part(narrow, StackPart::kOptimizerDtype) == static_cast<std::int64_t>(DType::kBFloat16));
  CHECK(part(narrow, StackPart::kLoraRank) == 64);
}

TEST_CASE("oat, ChatLearn and forks of OpenRLHF are read") {
  const ImportedPlan oat = plan_in(
      "python train_zero_math.py --gpus 8 --collocate --zero-stage 3 --pretrain Qwen/Qwen2.5-7B "
      "--prompt_max_length 1024 --generate_max_length 3072 --train_batch_size 128 "
      "--train_batch_size_per_device 1 --gradient-checkpointing");
  CHECK(oat.plan.degrees.dp == 8);
  CHECK(oat.model.seq == 4096);
  CHECK(oat.plan.zero == 3);
  const std::string chat =
      "python chatlearn/entrypoint.py grpo runtime_args.train_global_batch_size=256 "
      "runtime_args.train_micro_batch_size=1 models.policy_trainer.num_gpu=8 "
      "models.policy.max_prompt_tokens_length=1024 models.policy.max_response_tokens_length=2048 ";
  const ImportedPlan packed =
      plan_in(chat +
              "models.policy_trainer.load=Qwen/Qwen2.5-7B models.policy_trainer.packing=True "
              "models.policy_trainer.max_token_in_packing=8192");
  CHECK(packed.plan.micro_batch == 2);
  CHECK(packed.plan.zero == 3);
  const ImportedPlan split =
      plan_in(chat +
              "runtime_args.train_backend=megatron models.policy.load=Qwen/Qwen2.5-7B "
              "models.policy_trainer.tensor_model_parallel_size=2");
  CHECK(split.plan.degrees.tp == 2);
  CHECK(split.plan.global_batch == 256);
  const ImportedPlan fork = plan_in(
      "python -m ttrl.cli.train_ppo_naive --actor_num_nodes 1 --actor_num_gpus_per_node 4 "
      "--pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 4 --train_batch_size 128 --bf16 "
      "--zero_stage 3 --prompt_max_len 1024 --generate_max_len 3072 --max_len 8192 "
      "--n_votes_per_prompt 64");
  CHECK(fork.model.seq == 4096);
  CHECK(fork.plan.degrees.dp == 4);
  CHECK(fork.plan.global_batch == 128);
}

TEST_CASE("mcore_adapter's command trains pairs with DPO") {
  const std::string command =
      "torchrun --nproc_per_node 8 run_train.py --use_mca --model_name_or_path Qwen/Qwen2.5-7B "
      "--tensor_model_parallel_size 2 --sequence_parallel --cutoff_len 4096 --bf16 "
      "--per_device_train_batch_size 1 --gradient_accumulation_steps 8 --finetuning_type full ";
  const ImportedPlan tuned = plan_in(command + "--stage sft");
  CHECK(tuned.plan.degrees.tp == 2);
  CHECK(tuned.plan.global_batch == 32);
  const ImportedPlan pairs = plan_in(command + "--stage dpo --pref_loss sigmoid");
  CHECK(pairs.plan.micro_batch == 2);
  CHECK(pairs.plan.global_batch == 64);
}

}  // namespace tpsim
