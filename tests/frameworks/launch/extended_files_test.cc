// Configurations that extend others, or the defaults of a program's own checkout.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"
#include "tests/frameworks/launch/program_files.h"

namespace tpsim {
namespace {

// Opens these texts by their name, instead of files.
ImportInputs with_texts(std::map<std::string, std::string> texts, std::int64_t gpus = 0) {
  ImportInputs inputs = beside(gpus);
  inputs.open = [texts = std::move(texts)](const std::string& name) -> Result<std::string> {
    const auto found = texts.find(name);
    if (found == texts.end()) return bad_input("is not there", name);
    return found->second;
  };
  return inputs;
}

}  // namespace

TEST_CASE("a fork of verl has the defaults of its own configuration") {
  const std::string text =
      "python3 -m verl.trainer.main_ppo data.max_prompt_length=1024 data.max_response_length=1024 "
      "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_micro_batch_size=8 "
      "trainer.nnodes=1 trainer.n_gpus_per_node=8 algorithm.adv_estimator=grpo\n";
  const auto newest = import_text("run.sh", text, beside());
  REQUIRE(newest.ok());
  CHECK(newest->plan.recompute == Recompute::kFull);
  const std::string own =
      "actor_rollout_ref:\n  of_fork: 3\n  model:\n    enable_gradient_checkpointing: False\n"
      "  actor:\n    ppo_mini_batch_size: 64\n    ppo_micro_batch_size: 64\n"
      "  rollout:\n    n: 2\n    length: ${data.max_response_length}\n";
  const auto fork =
      import_text("run.sh", text, with_texts({{"../verl/trainer/config/ppo_trainer.yaml", own}}));
  if (!fork.ok()) FAIL(to_string(fork.error()));
  CHECK(fork->plan.recompute == Recompute::kNone);
  CHECK(fork->plan.global_batch == 128);
  CHECK(fork->plan.micro_batch == 1);  // the command's value wins
  CHECK(says(*fork, "verl/trainer/config/ppo_trainer.yaml"));
}

TEST_CASE("NeMo-RL's YAML extends other files, and trains with Megatron-Core or FSDP 2") {
  const std::string base =
      "policy:\n  model_name: meta-llama/Llama-3.2-1B\n  train_global_batch_size: 32\n"
      "  train_micro_batch_size: 1\n  max_total_sequence_length: 1024\n  precision: bfloat16\n"
      "  dtensor_cfg:\n    enabled: true\n    cpu_offload: False\n    tensor_parallel_size: 2\n"
      "    context_parallel_size: 1\n    activation_checkpointing: true\n"
      "  optimizer:\n    name: torch.optim.AdamW\n"
      "  megatron_cfg:\n    enabled: false\n    activation_checkpointing: false\n"
      "    tensor_model_parallel_size: 1\n    pipeline_model_parallel_size: 1\n"
      "cluster:\n  gpus_per_node: 1\n  num_nodes: 1\ndata:\n  validation:\n    name: squad\n";
  const std::string middle = "defaults: ../sft.yaml\ncluster:\n  gpus_per_node: 8\n";
  const auto inputs = with_texts({{"../sft.yaml", base}, {"middle.yaml", middle}});
  const auto fsdp = import_text(
      "run.yaml", "defaults: ./middle.yaml\npolicy:\n  train_global_batch_size: 64\n", inputs);
  if (!fsdp.ok()) FAIL(to_string(fsdp.error()));
  CHECK(fsdp->model.name == "llama-3.2-1b");
  CHECK(fsdp->model.seq == 1024);
  CHECK(fsdp->plan.degrees == ParallelDegrees{.tp = 2, .dp = 4});
  CHECK(fsdp->plan.zero == 3);
  CHECK(fsdp->plan.global_batch == 64);
  CHECK(fsdp->plan.recompute == Recompute::kFull);
  const auto megatron =
      import_text("run.yaml",
                  "defaults: middle.yaml\npolicy:\n  megatron_cfg:\n"
                  "    enabled: true\n    tensor_model_parallel_size: 4\n"
                  "    pipeline_model_parallel_size: 2\ndata:\n  validation: null\n",
                  inputs);
  if (!megatron.ok()) FAIL(to_string(megatron.error()));
  CHECK(megatron->plan.degrees == ParallelDegrees{.tp = 4, .pp = 2});
  CHECK(megatron->plan.global_batch == 32);
  CHECK(megatron->plan.recompute == Recompute::kNone);
  const auto gone = import_text("run.yaml", "defaults: gone.yaml\npolicy:\n  x: 1\n", inputs);
  REQUIRE_FALSE(gone.ok());
  CHECK_THAT(to_string(gone.error()), Catch::Contains("gone.yaml"));
}

TEST_CASE("LitGPT's YAML is one of FSDP 1 on several GPUs") {
  const std::string text =
      "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3.1-8B\nprecision: bf16-true\ndevices: 4\n"
      "train:\n  global_batch_size: 64\n  micro_batch_size: 4\n  max_seq_length: 512\n"
      "optimizer:\n  class_path: torch.optim.AdamW\n  init_args:\n    lr: 0.0002\n";
  const auto plan = import_text("run.yaml", text, beside());
  if (!plan.ok()) FAIL(to_string(plan.error()));
  CHECK(plan->plan.degrees.dp == 4);
  CHECK(plan->plan.zero == 3);
  CHECK(plan->plan.micro_batch == 4);
  CHECK(plan->plan.global_batch == 64);
  CHECK(plan->plan.recompute == Recompute::kFull);
  CHECK(plan->model.seq == 512);
  CHECK(text_of(row_of(StackPart::kMasterWeights), plan->parts.at(StackPart::kMasterWeights)) ==
        "none");
  std::string alone = text;
  alone.replace(alone.find("devices: 4"), 10, "devices: 1");
  const auto one = import_text("run.yaml", alone, beside());
  REQUIRE(one.ok());
  CHECK(one->plan.zero == 0);
  CHECK(one->plan.recompute == Recompute::kNone);
}

TEST_CASE("VeOmni without mixed precision trains in bf16, and reduces each micro-batch") {
  const auto plan = import_text("run.yaml",
                                "model:\n  model_path: Qwen/Qwen3-8B\ndata:\n  max_seq_len: 4096\n"
                                "train:\n  micro_batch_size: 1\n  global_batch_size: 64\n"
                                "  accelerator:\n    fsdp_config:\n      mixed_precision:\n"
                                "        enable: false\n",
                                beside(8));
  if (!plan.ok()) FAIL(to_string(plan.error()));
  const auto part = [&](StackPart which) { return text_of(row_of(which), plan->parts.at(which)); };
  CHECK(plan->plan.dtype == DType::kBFloat16);
  CHECK(plan->plan.gradient_dtype == DType::kBFloat16);
  CHECK(part(StackPart::kMasterWeights) == "none");
  CHECK(part(StackPart::kOptimizerDtype) == "bf16");
  CHECK(part(StackPart::kGradientSync) == "every_micro_batch");
}

TEST_CASE("NeMo AutoModel's expert parallelism is that of FSDP 2") {
  const auto plan =
      import_text("run.yaml",
                  "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 2\n"
                  "model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
                  "  pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B\n"
                  "distributed:\n  strategy: fsdp2\n  ep_size: 8\ndataset:\n  seq_length: 4096\n",
                  beside(16));
  if (!plan.ok()) FAIL(to_string(plan.error()));
  CHECK(plan->stack == "torchtitan");
  CHECK(plan->plan.degrees == ParallelDegrees{.dp = 16, .ep = 8});
  CHECK(plan->plan.global_batch == 64);
}

TEST_CASE("sizes that a file states win over those of the model that it names") {
  const std::string file =
      "model_name_or_path: meta-llama/Meta-Llama-3-8B\ntensor_model_parallel_size: 1\n"
      "finetuning_type: full\nbf16: true\ncutoff_len: 4096\n";
  const auto named = import_text("run.yaml", file, beside(8));
  if (!named.ok()) FAIL(to_string(named.error()));
  CHECK(named->model.name == "llama-3-8b");
  const auto other =
      import_text("run.yaml", file + "num_layers: 16\nvocab_size: 32000\n", beside(8));
  if (!other.ok()) FAIL(to_string(other.error()));
  CHECK(other->model.layers == 16);
  CHECK(other->model.vocab == 32000);
  CHECK(other->model.hidden == named->model.hidden);
  CHECK(other->model.attention.kv_heads == named->model.attention.kv_heads);
  const std::string note =
      "the file names llama-3-8b, but states other sizes, which are predicted: --num-layers 16 "
      "(32), --vocab-size 32000 (128256)";
  CHECK(std::count(other->notes.begin(), other->notes.end(), note) == 1);
  // A model that the file states whole has no size of the named one.
  const auto whole = import_text("run.yaml",
                                 file +
                                     "num_layers: 12\nhidden_size: 768\nnum_attention_heads: 12\n"
                                     "ffn_hidden_size: 3072\nvocab_size: 32000\n",
                                 beside(8));
  if (!whole.ok()) FAIL(to_string(whole.error()));
  CHECK(whole->model.attention.kv_heads == 12);
  CHECK(whole->model.mlp == MlpKind::kGelu);
  // The user's model wins.
  ImportInputs given = beside(8);
  given.model = named->model;
  given.model_wins = true;
  const auto kept = import_text("run.yaml", file + "num_layers: 16\n", given);
  if (!kept.ok()) FAIL(to_string(kept.error()));
  CHECK(kept->model.layers == 32);
}

}  // namespace tpsim
