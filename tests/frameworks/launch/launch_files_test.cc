// Launch files: they equal the golden files in tests/frameworks/launch/launch_files/, and plans
// that a stack cannot run are refused with a reason.
#include "frameworks/launch/launch_files.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "core/base/files.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/frameworks/launch/stack_rules.h"

namespace tpsim {
namespace {

using test::bloom_file;
using test::holds_line;
using test::llama_file;
using test::titan_file;
using test::without;

constexpr std::size_t kMostBytes = 1 << 20;

}  // namespace

TEST_CASE("the test's rules of each stack find broken files") {
  const auto objects = [](LaunchStack stack, const PlanFile& file, const std::string& part,
                          const std::string& instead) {
    auto files = export_plan(stack, file, 8).value();
    REQUIRE(test::objection(stack, files) == "");
    for (LaunchFile& one : files) {
      const std::size_t at = one.text.find(part);
      if (at != std::string::npos) one.text.replace(at, part.size(), instead);
    }
    return !test::objection(stack, files).empty();
  };
  const PlanFile llama = llama_file();
  const PlanFile bloom = bloom_file();
  CHECK(objects(LaunchStack::kMegatronLm, llama, "--bf16", "--bf17"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "--bf16", "--bf16\n  --fp16"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "MAX_CONNECTIONS=1", "MAX_CONNECTIONS=8"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "-size 512", "-size 513"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "-pipeline-rank 5", "-pipeline-rank 3"));
  CHECK(objects(LaunchStack::kMegatronDeepSpeed, bloom, "--zero-stage 0", "--zero-stage 2"));
  CHECK(objects(LaunchStack::kMegatronDeepSpeed, bloom, "steps\": 128", "steps\": 64"));
  CHECK(objects(LaunchStack::kMegatronDeepSpeed, bloom, "type alibi", "type rotary"));
  CHECK(objects(LaunchStack::kNemo, llama, "bf16_mixed", "bf16_maybe"));
  CHECK(objects(LaunchStack::kTorchTitan, titan_file(), "--parallelism.enable-sequence-parallel",
                "--parallelism.enable-sequence-parallel true"));
  CHECK(objects(LaunchStack::kSlurm, bloom, "--nodes=48", "--nodes=47"));
}

TEST_CASE("every version of a stack that ships has its job script") {
  PlanFile file = bloom_file();
  for (const char* stack : {"megatron-deepspeed-bloom", "megatron-deepspeed-bloom-early",
                            "mine/megatron-deepspeed.json", "reference"}) {
    file.stack = stack;
    CHECK(export_plan(LaunchStack::kSlurm, file, 8).ok());
  }
  file.stack = "reference";
  CHECK_THAT(
      export_plan(LaunchStack::kSlurm, file, 8)->front().text,
      Catch::Contains("srun tpsim run plan.json --device cuda") && Catch::Contains("--gres=gpu:8"));
  file.stack = "reference-cpu";
  CHECK_THAT(export_plan(LaunchStack::kSlurm, file, 8)->front().text,
             Catch::Contains("srun --mpi=pmix") && !Catch::Contains("--gres"));
  file.stack = "megatron-deepspeedy";
  CHECK_FALSE(export_plan(LaunchStack::kSlurm, file, 8).ok());
}

TEST_CASE("a model's name cannot add lines to a job script") {
  PlanFile file = bloom_file();
  file.model.name = "evil\nscancel --user=me # $(x)";
  const auto files = export_plan(LaunchStack::kSlurm, file, 8);
  REQUIRE(files.ok());
  CHECK_THAT(files->front().text,
             Catch::Contains("#SBATCH --job-name=evil-scancel---user-me-----x-\n"));
}

TEST_CASE("BLOOM's layout is exported with the settings of its launch script") {
  // bigscience-workshop/bigscience train/tr11-176B-ml/tr11-176B-ml.slurm @ 003b2505, main phase.
  const auto files = export_plan(LaunchStack::kMegatronDeepSpeed, bloom_file(), 8);
  REQUIRE(files.ok());
  const std::string& shell = files->front().text;
  for (const char* line :
       {"--tensor-model-parallel-size 4", "--pipeline-model-parallel-size 12",
        "--pp-partition-method 'type:transformer|embedding'", "--num-layers 70",
        "--hidden-size 14336", "--num-attention-heads 112", "--seq-length 2048",
        "--max-position-embeddings 2048", "--micro-batch-size 2", "--global-batch-size 2048",
        "--embed-layernorm", "--bf16", "--position-embedding-type alibi",
        "--checkpoint-activations", "--pad-vocab-size-to 250880", "--deepspeed", "--zero-stage 0",
        "--deepspeed-activation-checkpointing"}) {
    INFO(line);
    CHECK(holds_line(shell, line));
  }
  CHECK_THAT(shell, Catch::Contains("NUM_NODES=48\nGPUS_PER_NODE=8\n"));
  const std::string& config = (*files)[1].text;
  for (const char* part :
       {"\"train_micro_batch_size_per_gpu\": 2", "\"train_batch_size\": 2048",
        "\"gradient_clipping\": 1", "{\"stage\": 0}", "\"bf16\": {\"enabled\": true}"}) {
    INFO(config);
    CHECK_THAT(config, Catch::Contains(part));
  }
}

TEST_CASE("refusals name the setting and the reason") {
  struct Case {
    LaunchStack stack;
    PlanFile file;
    const char* what;
  };
  PlanFile zero_2 = bloom_file();
  zero_2.plan.zero = 2;
  PlanFile zero_3 = bloom_file();  // ZeRO 3 is refused without pipeline too
  zero_3.plan.zero = 3;
  zero_3.plan.degrees = {.tp = 4, .pp = 1, .dp = 96};
  zero_3.plan.global_batch = 1920;
  zero_3.plan.stage_layers = {70};
  PlanFile replicated = llama_file();
  replicated.plan.zero = 0;
  PlanFile flash = bloom_file();
  flash.plan.attention = AttentionKind::kFlash;
  PlanFile gpipe = llama_file();
  gpipe.plan.schedule = ScheduleKind::kGpipe;
  gpipe.plan.virtual_stages = 1;
  gpipe.plan.stage_layers = even_stage_layers(80, 4, false);
  PlanFile few = titan_file();
  few.plan.virtual_stages = 1;
  few.plan.schedule = ScheduleKind::kOneFOneB;
  few.plan.stage_layers = even_stage_layers(80, 4, false);
  few.plan.global_batch = 3 * few.plan.degrees.dp;
  PlanFile odd = titan_file();
  odd.model.seq = 8200;  // divides by tp but not by 2 tp
  PlanFile mapped = llama_file();
  mapped.plan.zero = 3;
  mapped.plan.degrees = {.tp = 8, .pp = 1, .dp = 32};
  mapped.plan.virtual_stages = 1;
  mapped.plan.schedule = ScheduleKind::kOneFOneB;
  mapped.plan.stage_layers = {80};
  mapped.plan.rank_order = RankOrder::kTpPpDp;
  PlanFile elsewhere = llama_file();
  elsewhere.stack = "my/stack.json";
  for (const Case& c : {Case{LaunchStack::kMegatronDeepSpeed, zero_2, "ZeRO 2 and 3"},
                        Case{LaunchStack::kMegatronDeepSpeed, flash, "flash attention"},
                        Case{LaunchStack::kMegatronLm, bloom_file(), "ALiBi"},
                        Case{LaunchStack::kMegatronLm, gpipe, "gpipe"},
                        Case{LaunchStack::kMegatronDeepSpeed, zero_3, "ZeRO 2 and 3"},
                        Case{LaunchStack::kTorchTitan, llama_file(), "ZeRO 1"},
                        Case{LaunchStack::kTorchTitan, replicated, "bf16 with tensor"},
                        Case{LaunchStack::kTorchTitan, bloom_file(), "this activation"},
                        Case{LaunchStack::kTorchTitan, few, "fewer micro-batches than stages"},
                        Case{LaunchStack::kTorchTitan, odd, "sequences of this length"},
                        Case{LaunchStack::kNemo, mapped, "tp-pp-dp with ZeRO 2 or 3"},
                        Case{LaunchStack::kNanotron, bloom_file(), "architecture"},
                        Case{LaunchStack::kAccelerate, llama_file(), "tensor, pipeline"},
                        Case{LaunchStack::kKubernetes, elsewhere, "my/stack.json"},
                        Case{LaunchStack::kSlurm, elsewhere, "my/stack.json"}}) {
    const auto files = export_plan(c.stack, c.file, 8);
    REQUIRE_FALSE(files.ok());
    CHECK_THAT(files.error().message, Catch::Contains(c.what));
  }
}

TEST_CASE("the stack's overlaps are exported as Megatron options") {
  StackSpec software;
  TrainingOptions& training = software.training;
  training.overlap_gradient_reduction = training.overlap_parameter_gather = true;
  PlanFile file = llama_file();
  const auto text = [&](LaunchStack stack) {
    const auto files = export_plan(stack, file, 8, software);
    REQUIRE(files.ok());
    REQUIRE(test::objection(stack, *files) == "");
    CHECK(import_plan(stack, *files, file.model).value().plan == file.plan);
    return files->back().text;
  };
  CHECK_THAT(text(LaunchStack::kMegatronLm),
             Catch::Contains("--overlap-grad-reduce\n  --overlap-param-gather"));
  CHECK_THAT(text(LaunchStack::kNemo), Catch::Contains("overlap_param_gather: true"));
  file.plan.zero = 0;  // ZeRO 0 has no parameter gather
  CHECK_THAT(text(LaunchStack::kMegatronLm), Catch::Contains("--overlap-grad-reduce") &&
                                                 !Catch::Contains("--overlap-param-gather"));
  auto files = export_plan(LaunchStack::kMegatronLm, file, 8, software).value();
  files[0].text = without(files[0].text, "reduce\n", "reduce\n  --overlap-param-gather\n");
  CHECK_THAT(import_plan(LaunchStack::kMegatronLm, files, file.model).error().message,
             Catch::Contains("needs a distributed optimizer"));
}

TEST_CASE("the exported files equal the golden files") {
  // To update: TPSIM_REGENERATE_GOLDEN=1; review the diff.
  const PlanFile titan = titan_file();
  const std::filesystem::path folder =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/frameworks/launch/launch_files";
  const auto check = [&](LaunchStack stack, const PlanFile& file, const std::string& name) {
    const auto files = export_plan(stack, file, 8);
    REQUIRE(files.ok());
    for (const LaunchFile& exported : *files) {
      INFO(name << "/" << exported.name);
      const auto golden = read_file(folder / name / exported.name, kMostBytes);
      REQUIRE(golden.ok());
      if (std::getenv("TPSIM_REGENERATE_GOLDEN") != nullptr) {
        REQUIRE(write_file_atomically(folder / name / exported.name, exported.text).ok());
      }
      CHECK(exported.text == *golden);
    }
    CHECK(import_plan(stack, *files, file.model).value().plan == file.plan);
  };
  check(LaunchStack::kMegatronDeepSpeed, bloom_file(), "bloom-176b");
  check(LaunchStack::kSlurm, bloom_file(), "bloom-176b");
  check(LaunchStack::kMegatronLm, llama_file(), "llama-3-70b");
  check(LaunchStack::kNemo, llama_file(), "llama-3-70b");
  check(LaunchStack::kTorchTitan, titan, "llama-3-70b");
  check(LaunchStack::kKubernetes, bloom_file(), "bloom-176b");
}

}  // namespace tpsim
