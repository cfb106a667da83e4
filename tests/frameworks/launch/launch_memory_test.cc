// Launch files of plans that save memory by recompute of some blocks, the allocator, or an
// offloaded optimizer.
#include <catch2/catch.hpp>

#include "frameworks/launch/launch_files.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::file_of;
using test::holds_line;
using test::llama_file;
using test::without;

TEST_CASE("recompute of some blocks is exported to stacks that recompute the first blocks") {
  PlanFile file = llama_file();
  file.plan.recompute = Recompute::kBlocks;
  file.plan.recompute_blocks = 3;
  const auto megatron = export_plan(LaunchStack::kMegatronLm, file, 8);
  REQUIRE(megatron.ok());
  CHECK(holds_line(megatron->front().text, "--recompute-method block"));
  CHECK(holds_line(megatron->front().text, "--recompute-num-layers 3"));
  CHECK(import_plan(LaunchStack::kMegatronLm, *megatron, file.model)->plan == file.plan);

  auto all = *megatron;  // each chunk has 4 blocks
  all.front().text =
      without(all.front().text, "--recompute-num-layers 3", "--recompute-num-layers 4");
  CHECK(import_plan(LaunchStack::kMegatronLm, all, file.model)->plan.recompute == Recompute::kFull);

  file.plan.zero = 3;
  const auto titan = export_plan(LaunchStack::kTorchTitan, file, 8);
  REQUIRE_FALSE(titan.ok());
  CHECK_THAT(titan.error().message, Catch::Contains("recompute of some blocks"));
}

TEST_CASE("the allocator of a plan goes into every launch file and comes back") {
  int tried = 0;
  for (int i = 0; i < kLaunchStackCount; ++i) {
    const auto stack = static_cast<LaunchStack>(i);
    CAPTURE(name_of(stack));
    PlanFile file = llama_file();
    file.plan.virtual_stages = file.plan.degrees.tp = file.plan.degrees.pp = 1;
    file.plan.sequence_parallel = false;
    file.plan.schedule = ScheduleKind::kOneFOneB;
    file.plan.degrees.dp = 8;
    file.plan.stage_layers = {file.model.layers};
    if (stack == LaunchStack::kTorchTitan || stack == LaunchStack::kAccelerate) file.plan.zero = 3;
    const auto plain = export_plan(stack, file, 8);
    if (!plain.ok()) continue;  // the stack does not support this model
    ++tried;
    CHECK(plain->front().text.find("ALLOC_CONF") == std::string::npos);
    CHECK(import_plan(stack, *plain, file.model)->parts.count(StackPart::kExpandableSegments) == 0);
    for (const std::int64_t expands : {0, 1}) {
      file.parts = {{StackPart::kExpandableSegments, expands}};
      const auto files = export_plan(stack, file, 8);
      REQUIRE(files.ok());
      CHECK_THAT(
          files->front().text,
          Catch::Contains(std::string("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:") +
                          (expands == 1 ? "True\n" : "False\n")));
      const auto back = import_plan(stack, *files, file.model);
      REQUIRE(back.ok());
      CHECK(back->plan == file.plan);
      CHECK(back->parts.at(StackPart::kExpandableSegments) == expands);
    }
  }
  CHECK(tried >= 7);
}

TEST_CASE("an offloaded optimizer is exported to stacks that can offload it") {
  PlanFile file = llama_file();
  file.plan.zero = 1;
  file.plan.offload = Offload::kOptimizer;
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    const auto files = export_plan(stack, file, 8);
    REQUIRE(files.ok());
    CHECK(import_plan(stack, *files, file.model)->plan == file.plan);
  }
  const auto megatron = export_plan(LaunchStack::kMegatronLm, file, 8);
  CHECK(holds_line(megatron->front().text, "--optimizer-cpu-offload"));
  CHECK(holds_line(megatron->front().text, "--use-precision-aware-optimizer"));
  file.plan.zero = 0;
  CHECK_FALSE(export_plan(LaunchStack::kMegatronLm, file, 8).ok());
  file.plan.zero = 3;
  const auto titan = export_plan(LaunchStack::kTorchTitan, file, 8);
  REQUIRE_FALSE(titan.ok());
  CHECK_THAT(titan.error().message, Catch::Contains("an offloaded optimizer"));

  const ModelSpec gpt = test::small_gpt();
  Plan plan = test::plan_of(gpt, {.tp = 2, .pp = 2, .dp = 2}, 4);
  plan.zero = 1;
  plan.dtype = plan.gradient_dtype = DType::kFloat16;
  plan.offload = Offload::kOptimizer;
  const auto deepspeed = export_plan(LaunchStack::kMegatronDeepSpeed, file_of(gpt, plan), 4);
  REQUIRE(deepspeed.ok());
  CHECK(holds_line(deepspeed->front().text, "--cpu-optimizer"));
  CHECK_THAT((*deepspeed)[1].text, Catch::Contains("offload_optimizer"));
  CHECK(import_plan(LaunchStack::kMegatronDeepSpeed, *deepspeed, gpt)->plan == plan);
  plan.dtype = DType::kBFloat16;
  plan.gradient_dtype = DType::kFloat32;
  CHECK_FALSE(export_plan(LaunchStack::kMegatronDeepSpeed, file_of(gpt, plan), 4).ok());
}

}  // namespace
}  // namespace tpsim
