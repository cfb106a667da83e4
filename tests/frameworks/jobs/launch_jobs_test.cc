// Jobs of Slurm and Kubernetes around launch files, and the sharding options of accelerate.
#include <catch2/catch.hpp>

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

TEST_CASE("FSDP over a node is accelerate's HYBRID_SHARD, other groups are a mesh of FSDP 2") {
  const ModelSpec model = test::small_llama();
  PlanFile file = file_of(model, test::plan_of(model, {.tp = 1, .pp = 1, .dp = 8}, 8));
  file.plan.zero = 3;
  file.plan.recompute = Recompute::kNone;
  file.plan.attention = AttentionKind::kFlash;
  file.parts[StackPart::kShardGroup] = kShardOverNode;
  const auto files = export_plan(LaunchStack::kAccelerate, file, 4);
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
