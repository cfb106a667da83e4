// Rows of run tables whose program, columns or missing columns decide how they are predicted.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "evidence/runs/validation.h"

namespace tpsim {
namespace {

RunLoader loader_of_shipped_data() {
  return RunLoader(Catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data"), {}, {});
}

double step_of(const PublishedRun& run) {
  RunLoader loader = loader_of_shipped_data();
  return predict_run(loader, run).step_s;
}

std::string refusal_of(const PublishedRun& run) {
  RunLoader loader = loader_of_shipped_data();
  return predict_run(loader, run).skipped_because;
}

// A run of FSDP 2 with several micro-batches, whose whole gradients would be in memory.
PublishedRun sharded_run(const char* framework) {
  PublishedRun run;
  run.id = "row";
  run.outcome = "ok";
  run.layers = 8;
  run.hidden = 2048;
  run.heads = 16;
  run.seq = 1024;
  run.tp = run.pp = run.micro_batch = 1;
  run.step_s = 1;
  run.gpu = "H100-80GB-SXM";
  run.framework = framework;
  run.gated_ffn = true;
  run.zero = "3";
  run.dp = 8;
  run.global_batch = 32;
  run.recompute = "full";
  return run;
}

}  // namespace

TEST_CASE("programs that reduce after each micro-batch keep shards of gradients alone") {
  RunLoader loader = loader_of_shipped_data();
  PublishedRun stated = sharded_run("TRL (PyTorch FSDP2)");
  const RunOutcome whole = predict_run(loader, stated);
  for (const char* program : {"prime-rl (PyTorch FSDP2)", "torchtune (FSDP2)"}) {
    CAPTURE(program);
    const RunOutcome shards = predict_run(loader, sharded_run(program));
    REQUIRE(shards.predicted);
    CHECK(shards.stack == whole.stack);
    CHECK(shards.memory_gib < whole.memory_gib);
    CHECK_THAT(shards.parts, Catch::Contains("gradient_sync=every_micro_batch"));
  }
  stated.parts[StackPart::kGradientSync] = "last_micro_batch";
  CHECK(predict_run(loader, stated).memory_gib == whole.memory_gib);
}

TEST_CASE("rows of torchtitan have the software of their month") {
  RunLoader loader = loader_of_shipped_data();
  PublishedRun run = sharded_run("torchtitan");
  for (const auto& [date, gpu, kernel] :
       {std::tuple{"2025-09", "H100-80GB-SXM", AttentionKernel::kFlash2},
        std::tuple{"2025-11", "H100-80GB-SXM", AttentionKernel::kCudnn},
        std::tuple{"2025-09", "B200", AttentionKernel::kCudnn},
        std::tuple{"2026-07", "B200", AttentionKernel::kFlex}}) {
    run.date = date;
    run.gpu = gpu;
    const auto setup = loader.setup(run);
    REQUIRE(setup.ok());
    CHECK(setup->scenario.stack.name == "torchtitan");
    CHECK(setup->scenario.stack.parts.attention_kernel == kernel);
    const bool is_new = kernel == AttentionKernel::kFlex;
    CHECK((setup->scenario.stack.parts.loss_head == LossHead::kChunked) == is_new);
  }
}

TEST_CASE("8-bit gathers halve the traffic of ZeRO 3 and never slow a step") {
  RunLoader loader = loader_of_shipped_data();
  for (const char* framework : {"torchtitan", "Megatron-LM"}) {
    CAPTURE(framework);
    PublishedRun run = sharded_run(framework);
    run.hidden = 8192;
    run.heads = 64;
    run.dtype = "fp8";
    run.precision_recipe = "current";
    run.dp = 64;
    run.global_batch = 64;
    run.settings[Setting::kFp8ParamGather] = "off";
    const double wide = step_of(run);
    run.settings[Setting::kFp8ParamGather] = "on";
    CHECK(step_of(run) < wide);
    CHECK(predict_run(loader, run).without_effect.empty());
  }
}

TEST_CASE("a row without recompute has the mean p(OOM) of none and full") {
  RunLoader loader = loader_of_shipped_data();
  PublishedRun run = sharded_run("torchtitan");
  run.layers = 32;
  run.hidden = 4096;
  run.heads = 32;
  run.seq = 8192;
  run.micro_batch = 4;
  const double full = predict_run(loader, run).p_oom;
  run.recompute = "none";
  const double none = predict_run(loader, run).p_oom;
  REQUIRE(none > full);
  run.recompute.clear();
  const RunOutcome open = predict_run(loader, run);
  CHECK(open.p_oom == Approx((none + full) / 2));
  CHECK(open.has_open_recompute);
}

TEST_CASE("a speed per GPU without a number of GPUs is a reason to skip the row") {
  PublishedRun run = sharded_run("Megatron-LM");
  run.step_s.reset();
  run.tokens_per_s_per_gpu = 1000;
  run.dp = 0;
  CHECK_THAT(refusal_of(run), Catch::Contains("does not state dp"));
  CHECK_FALSE(measured_step(run, ModelSpec()).ok());
}

TEST_CASE("a model whose width is not a multiple of its heads is priced by its name") {
  PublishedRun run = sharded_run("Megatron-LM");
  run.heads = 96;
  CHECK_THAT(refusal_of(run), Catch::Contains("fill head_dim"));
  PublishedRun named = sharded_run("Megatron-LM");
  named.layers = named.hidden = named.heads = 0;
  named.gated_ffn.reset();
  named.model = "GLM-4.5-Air";
  named.dp = 64;
  named.global_batch = 64;
  CHECK(refusal_of(named).empty());
}

TEST_CASE("stated parts without effect are named") {
  RunLoader loader = loader_of_shipped_data();
  PublishedRun run = sharded_run("Megatron-LM");
  run.parts[StackPart::kCpCommType] = "a2a";  // without context parallelism
  CHECK(predict_run(loader, run).without_effect == std::vector<std::string>{"cp_comm_type=a2a"});
  run.parts = {{StackPart::kNormKernel, "torch"}};
  CHECK(predict_run(loader, run).without_effect.empty());
}

TEST_CASE("a schedule that tpsim lacks is a reason to skip the row") {
  PublishedRun run = sharded_run("Megatron-LM");
  run.settings[Setting::kSchedule] = "zbv";
  CHECK_THAT(refusal_of(run), Catch::Contains("schedule 'zbv' is not modelled"));
}

}  // namespace tpsim
