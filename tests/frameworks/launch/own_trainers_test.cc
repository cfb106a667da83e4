// Scripts of trainers with options of their own: the options that count are read, and what they
// leave open is asked for.
#include <catch2/catch.hpp>

#include "tests/frameworks/launch/program_files.h"

namespace tpsim {
namespace {

ImportedPlan plan_in(const std::string& text, const ImportInputs& inputs = beside()) {
  Result<ImportedPlan> plan = import_text("run.sh", text, inputs);
  INFO(text);
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

const std::string kTrainer =
    "torchrun --nproc_per_node 8 train.py --model_name Qwen/Qwen2.5-7B --block_size 2048 --bf16 "
    "--per_device_train_batch_size 1 --gradient_accumulation_steps 2 --train_file_path data "
    "--gradient_checkpointing --fsdp ";

const std::string kForked =
    "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 --seq-length 512 "
    "--num-attention-heads 8 --max-position-embeddings 512 --micro-batch-size 1 --fp16 "
    "--vocab-size 1024 --deepspeed --deepspeed_config ds.json --no-pipeline-parallel ";

std::string with_json(const std::string& command, std::int64_t batch,
                      const std::string& more = "") {
  return "cat > ds.json <<E\n{\"train_batch_size\": " + std::to_string(batch) +
         ", \"train_micro_batch_size_per_gpu\": 1, \"fp16\": {\"enabled\": true}" + more +
         "}\nE\n" + command + "--global-batch-size " + std::to_string(batch) + "\n";
}

}  // namespace

TEST_CASE("a Trainer's own options state model, length and ranks of a sequence") {
  const ImportedPlan plain = plan_in(kTrainer + "\"full_shard auto_wrap\"\n");
  CHECK(plain.model.name == "qwen2.5-7b");
  CHECK(plain.model.seq == 2048);
  CHECK(plain.plan.zero == 3);
  CHECK(plain.plan.global_batch == 16);
  const ImportedPlan split = plan_in(kTrainer + "auto_wrap --seq_parallel_size 4\n");
  CHECK(split.plan.degrees.cp == 4);
  CHECK(split.plan.degrees.dp == 2);
  CHECK(split.plan.global_batch == 4);
  const ImportedPlan named =
      plan_in("export FSDP_SHARDING_STRATEGY=2\n" + kTrainer + "auto_wrap\n");
  CHECK(named.plan.zero == 2);
  CHECK(plan_in(kTrainer + "\"full_shard offload\"\n").plan.offload == Offload::kParameters);
  const auto lisa = import_text("run.sh", kTrainer + "auto_wrap --use_lisa 1\n", beside());
  REQUIRE_FALSE(lisa.ok());
  CHECK(lisa.error().hint == kAllWeights);
}

TEST_CASE("Megatron-DeepSpeed's experts have its defaults, and Ulysses is context parallelism") {
  const ImportedPlan experts =
      plan_in(with_json(kForked + "--num-experts 16 --moe-expert-parallel-size 8 ", 8));
  CHECK(experts.plan.degrees.ep == 8);
  CHECK(experts.model.experts.per_token == 1);
  CHECK_FALSE(experts.model.experts.dropless);
  const auto kinds = experts.model.block_kinds;
  REQUIRE(kinds.size() == 4);
  CHECK(kinds[0] == kinds[2]);
  CHECK(kinds[0] != kinds[1]);
  const ImportedPlan split = plan_in(with_json(kForked + "--ds-sequence-parallel-size 4 ", 2));
  CHECK(split.plan.degrees.cp == 4);
  CHECK(split.plan.degrees.dp == 2);
  CHECK(split.parts.at(StackPart::kCpCommType) == static_cast<std::int64_t>(CpCommType::kA2a));
  const ImportedPlan grows =
      plan_in(with_json(kForked, 8, ", \"curriculum_learning\": {\"enabled\": true}"));
  CHECK(std::any_of(grows.notes.begin(), grows.notes.end(),
                    [](const std::string& note) { return note.starts_with("curriculum"); }));
  const auto part = import_text(
      "run.sh",
      with_json(kForked, 8,
                ", \"zero_optimization\": {\"stage\": 1, \"offload_optimizer\": {\"device\": "
                "\"cpu\", \"ratio\": 0.5}}"),
      beside());
  REQUIRE_FALSE(part.ok());
  CHECK_THAT(part.error().message, Catch::Contains("offload_optimizer.ratio: 0.5"));
}

TEST_CASE("example trainers are read with their own defaults") {
  const ImportedPlan chat = plan_in(
      "deepspeed main.py --data_path a --data_split 2,4,4 --actor_model_name_or_path "
      "facebook/opt-6.7b --critic_model_name_or_path facebook/opt-1.3b --max_answer_seq_len 256 "
      "--max_prompt_seq_len 256 --per_device_training_batch_size 4 --actor_zero_stage 3 "
      "--actor_gradient_checkpointing --deepspeed --output_dir out\n",
      beside(8));
  CHECK(chat.model.seq == 512);
  CHECK(chat.plan.zero == 3);
  CHECK(chat.plan.dtype == DType::kFloat16);
  CHECK(chat.plan.global_batch == 32);
  const std::string adapted =
      "deepspeed main.py --data_split 2,4,4 --model_name_or_path facebook/opt-6.7b --lora_dim 64";
  const ImportedPlan lora = plan_in((adapted + " --only_optimize_lora\n").c_str(), beside(8));
  CHECK(lora.parts.at(StackPart::kLoraRank) == 64);
  const auto beside_weights = import_text("chat.sh", (adapted + "\n").c_str(), beside(8));
  REQUIRE_FALSE(beside_weights.ok());
  CHECK_THAT(beside_weights.error().hint, Catch::Contains("adapters with frozen weights"));
  const ImportedPlan aws = plan_in(
      "torchrun --nproc_per_node=8 --nnodes=2 ./train.py --max_context_width=4096 "
      "--num_key_value_heads=8 --intermediate_size=14336 --hidden_width=4096 --num_layers=32 "
      "--num_heads=32 --model_type=llama_v2 --train_batch_size=1 --sharding_strategy=hybrid\n");
  CHECK(aws.model.layers == 32);
  CHECK(aws.model.attention.kv_heads == 8);
  CHECK(aws.model.vocab == 50432);
  CHECK(aws.plan.degrees.dp == 16);
  CHECK(aws.parts.at(StackPart::kShardGroup) == kShardOverNode);
}

TEST_CASE("a number of nodes that is a text is asked for") {
  const auto plan = import_text(
      "run.sh",
      "python3 -m verl.trainer.main_ppo data.max_prompt_length=1024 actor_rollout_ref.model.path="
      "Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
      "trainer.n_gpus_per_node=8 trainer.nnodes=TO_BE_FILLED\n",
      beside());
  REQUIRE_FALSE(plan.ok());
  CHECK_THAT(plan.error().message, Catch::Contains("'TO_BE_FILLED'"));
  CHECK_THAT(plan.error().hint, Catch::Contains("--gpus N"));
}

}  // namespace tpsim
