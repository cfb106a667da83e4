// Jobs of Slurm and Kubernetes around launch files, and the sharding options of accelerate.
#include <catch2/catch.hpp>

#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::bloom_file;
using test::file_of;
using test::holds_line;
using test::llama_file;
using test::titan_file;

}  // namespace

TEST_CASE("jobs start the files of every stack with launch files, and are read back") {
  PlanFile nanotron = titan_file();
  nanotron.plan.zero = 1;
  nanotron.plan.schedule = ScheduleKind::kOneFOneB;
  nanotron.plan.virtual_stages = 1;
  nanotron.plan.stage_layers = default_stage_layers(80, nanotron.plan.degrees.pp);
  PlanFile accelerate = titan_file();
  accelerate.plan.degrees = {.tp = 1, .pp = 1, .dp = 256};
  accelerate.plan.zero = 3;
  accelerate.plan.sequence_parallel = false;
  accelerate.plan.schedule = ScheduleKind::kOneFOneB;
  accelerate.plan.virtual_stages = 1;
  accelerate.plan.stage_layers = {80};
  struct Case {
    const char* stack;
    Launcher launcher;
    PlanFile file;
    const char* program;
  };
  for (Case& c : std::vector<Case>{
           {"megatron-core", Launcher::kNone, llama_file(), "pretrain_gpt.py"},
           {"megatron-deepspeed-bloom", Launcher::kNone, bloom_file(), "pretrain_gpt.py"},
           {"nemo", Launcher::kNone, llama_file(), "pretrain.py"},
           {"my-own.json", Launcher::kNemo, llama_file(), "pretrain.py"},
           {"torchtitan", Launcher::kNone, titan_file(), "-m torchtitan.train"},
           {"nanotron", Launcher::kNone, nanotron, "run_train.py"},
           {"pytorch-fsdp", Launcher::kNone, accelerate, "accelerate launch"}}) {
    INFO(c.stack);
    c.file.stack = c.stack;
    for (const LaunchStack job : {LaunchStack::kSlurm, LaunchStack::kKubernetes}) {
      StackSpec software;
      software.launcher = c.launcher;
      const auto files = export_plan(job, c.file, 8, software);
      if (!files.ok()) FAIL(to_string(files.error()));
      CHECK_THAT(files->front().text, Catch::Contains(c.program));
      CHECK(import_plan(job, *files, c.file.model).value().plan == c.file.plan);
    }
  }
  PlanFile own = bloom_file();
  own.stack = "reference";
  CHECK_THAT(export_plan(LaunchStack::kKubernetes, own, 8).error().hint, Catch::Contains("Slurm"));
}

TEST_CASE("the container of a manifest starts the training, and its pods state the GPUs") {
  const std::string options =
      "pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 "
      "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --bf16 "
      "--max-position-embeddings 512 --vocab-size 5120";
  const auto job = [&](std::int64_t replicas, const std::string& command) {
    return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n"
           "    Worker:\n      replicas: " +
           std::to_string(replicas) +
           "\n      template:\n        spec:\n          containers:\n            - name: a\n" +
           command +
           "              resources:\n                limits:\n                  nvidia.com/gpu: "
           "8\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: b\n";
  };
  const auto dp_of = [](const std::string& text) {
    const auto read = import_config({"job.yaml", text}, ImportInputs{});
    return read.ok() ? std::to_string(read->plan.degrees.dp) : read.error().message;
  };
  const std::string shell =
      "              command: [bash, -c]\n              args:\n                - |\n"
      "                  torchrun --nnodes 2 --nproc_per_node 8 " +
      options + "\n";
  std::string words = "              command: [torchrun, --nnodes, $(NODES)";
  for (const std::string& word : words_in(options)) words += ", \"" + word + "\"";
  words += "]\n";
  CHECK(dp_of(job(2, shell)) == "8");
  CHECK(dp_of(job(4, words)) == "16");
  CHECK(dp_of(job(4, shell)) == "its pods request 32 GPUs, but its command starts 16 ranks");
  CHECK(dp_of("num_nodes: 2\nrun: |\n  torchrun --nnodes 2 --nproc_per_node 8 " + options + "\n") ==
        "8");
  CHECK(dp_of(job(2, "              command: [sleep, inf]\n")) ==
        "has no container that starts a training");
}

TEST_CASE("a JobSet requests the plan's nodes and GPUs, with a valid Kubernetes name") {
  PlanFile file = bloom_file();
  file.model.name = "My_Model: v2.0!";
  const std::string text = export_plan(LaunchStack::kKubernetes, file, 8)->front().text;
  for (const char* line : {"name: my-model--v2-0", "kueue.x-k8s.io/queue-name: user-queue",
                           "completions: 48", "parallelism: 48", "nvidia.com/gpu: 8",
                           "MASTER_ADDR=my-model--v2-0-node-0-0.my-model--v2-0"}) {
    CHECK(holds_line(text, line));
  }
}

TEST_CASE("accelerate gets FSDP 2, with a mesh if a node or another group shares the state") {
  const ModelSpec model = test::small_llama();
  PlanFile file = file_of(model, test::plan_of(model, {.tp = 1, .pp = 1, .dp = 16}, 8));
  file.plan.zero = 3;
  file.plan.recompute = Recompute::kNone;
  file.plan.attention = AttentionKind::kFlash;
  const auto whole = export_plan(LaunchStack::kAccelerate, file, 8);
  REQUIRE(whole.ok());
  CHECK(holds_line(whole->back().text, "fsdp_version: 2"));
  CHECK_THAT(whole->back().text, !Catch::Contains("fsdp_sharding_strategy"));
  file.parts[StackPart::kShardGroup] = kShardOverNode;
  const auto files = export_plan(LaunchStack::kAccelerate, file, 8);
  REQUIRE(files.ok());
  const auto back = import_plan(LaunchStack::kAccelerate, *files, model);
  REQUIRE(back.ok());
  CHECK(back->plan == file.plan);
  CHECK(back->parts.at(StackPart::kShardGroup) == kShardOverNode);
  for (const int zero : {2, 3}) {
    file.plan.zero = zero;
    for (const std::int64_t group : {2, 4}) {
      file.parts[StackPart::kShardGroup] = group;
      const auto mesh = export_plan(LaunchStack::kAccelerate, file, 4);
      REQUIRE(mesh.ok());
      const auto read = import_plan(LaunchStack::kAccelerate, *mesh, model);
      REQUIRE(read.ok());
      CHECK(read->plan == file.plan);
      CHECK(read->parts.at(StackPart::kShardGroup) == group);
    }
  }
  file.plan.zero = 1;
  CHECK_THAT(export_plan(LaunchStack::kAccelerate, file, 4).error().message,
             Catch::Contains("ZeRO 1"));
}

}  // namespace tpsim
