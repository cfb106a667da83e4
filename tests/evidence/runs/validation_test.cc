// The figures of a validation, on synthetic rows.
#include "evidence/runs/validation.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

RunOutcome row(const char* group, double measured, double predicted) {
  RunOutcome run;
  run.outcome = "ok";
  run.group = group;
  run.predicted = true;
  run.measured_step_s = measured;
  run.step_s = predicted;
  run.low_s = 0.9 * predicted;
  run.high_s = 1.1 * predicted;
  return run;
}

PublishedRun small_run() {
  PublishedRun run;
  run.layers = 4;
  run.hidden = 1024;
  run.heads = 8;
  run.seq = 2048;
  run.vocab = 51200;
  run.tp = run.pp = run.dp = run.micro_batch = 1;
  run.gpus = 1;
  run.global_batch = 8;
  run.recompute = "full";
  return run;
}

// The model of small_run().
ModelSpec small_model() {
  ModelSpec model = test::small_gpt();
  model.layers = 4;
  model.hidden = 1024;
  model.ffn_hidden = 4096;
  model.attention = {8, 8, 128, PositionKind::kLearned, 10000.0};
  model.seq = 2048;
  model.vocab = 51200;
  return model;
}

}  // namespace

TEST_CASE("errors are predicted over measured, less one") {
  const ValidationSummary s = summarize({row("a", 10, 11), row("b", 10, 8)});
  CHECK(s.n == 2);
  CHECK(s.mape == Approx(0.15));
  CHECK(s.bias == Approx(-0.05));
  CHECK(s.max_ape == Approx(0.2));
  CHECK(s.median_ape == Approx(0.15));  // mean of both
  CHECK(s.interval_coverage == Approx(0.5));
}

TEST_CASE("order is judged within groups only") {
  // The two groups contradict each other, but a planner never compares plans of different groups.
  const ValidationSummary s =
      summarize({row("a", 10, 30), row("a", 11, 31), row("b", 20, 3), row("b", 19, 2)});
  CHECK(s.pairs == 2);
  CHECK(s.kendall_tau == Approx(1));
  const double a = std::log(30.0 / 10) - std::log(31.0 / 11);
  const double b = std::log(3.0 / 20) - std::log(2.0 / 19);
  CHECK(s.pair_spread == Approx(std::sqrt((a * a + b * b) / 2)));
}

TEST_CASE("regret is how much slower the predicted pick is than the best row") {
  const ValidationSummary s = summarize({row("a", 10, 12), row("a", 11, 9), row("a", 15, 14)});
  CHECK(s.regret_groups == 1);
  CHECK(s.top1_regret == Approx(0.1));
}

TEST_CASE("rows that ran out of memory have a predicted outcome and no time") {
  RunOutcome oom = row("a", 10, 10);
  oom.outcome = "oom";
  oom.measured_step_s.reset();
  oom.p_oom = 0.9;
  RunOutcome wrong = row("a", 10, 10);
  wrong.p_oom = 0.6;
  const ValidationSummary s = summarize({oom, wrong});
  CHECK(s.n == 1);
  CHECK(s.oom_total == 1);
  CHECK(s.oom_caught == 1);
  CHECK(s.false_oom == 1);
}

TEST_CASE("a stated speed replaces a missing time") {
  PublishedRun run = small_run();
  const ModelSpec model = small_model();
  CHECK_FALSE(measured_step(run, model).ok());
  run.tokens_per_s_per_gpu = 8 * 2048 / 2.0;
  CHECK(measured_step(run, model)->value() == Approx(2.0));
  run.step_s = 3.0;
  CHECK(measured_step(run, model)->value() == Approx(3.0));
}

TEST_CASE("hardware TFLOPs become seconds by Narayanan's equation 3") {
  PublishedRun run = small_run();
  run.hardware_tflops_per_gpu = 100;
  const double h = 1024, l = 4, s = 2048, v = 51200;
  const double flops = 96 * 8 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  CHECK(measured_step(run, small_model())->value() == Approx(flops / 100e12));
}

TEST_CASE("hardware TFLOPs of other models than GPT count the GEMMs that they have") {
  PublishedRun run = small_run();
  run.hardware_tflops_per_gpu = 100;
  ModelSpec gated = small_model();
  gated.mlp = MlpKind::kSwiglu;
  // A third GEMM of 4 h^2 weights, in four passes of 2 FLOPs for each weight and token.
  const double more = 4 * 2 * 8 * 2048.0 * 4 * (4 * 1024.0 * 1024);
  CHECK(measured_step(run, gated)->value() ==
        Approx(measured_step(run, small_model())->value() + more / 100e12));
}

TEST_CASE("BLOOM's own optimizer counts as ZeRO 1") {
  PublishedRun run = small_run();
  run.zero = "0 (BF16_Optimizer implements its own ZeRO-1 equivalent)";
  const auto plan = plan_of(run, {}, {});
  REQUIRE(plan.ok());
  CHECK(plan->zero == 1);
}

TEST_CASE("an unsupported row has a reason") {
  PublishedRun run = small_run();
  run.dtype = "int4";
  const auto plan = plan_of(run, {}, {});
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message == "dtype int4 is not modelled");
}

TEST_CASE("a row with context parallelism gives such a plan") {
  PublishedRun run = small_run();
  run.cluster = "here";
  run.cp = 2;
  run.gpus = 2;
  RunEnvironment here;
  here.cluster = "here";
  here.runs_on = "dgx-a100-node";
  RunLoader loader(Catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data"), {here}, {});
  const auto setup = loader.setup(run);
  REQUIRE(setup.ok());
  CHECK(setup->scenario.model.seq == run.seq);
  CHECK(setup->plan.degrees.cp == 2);
  CHECK(setup->plan.degrees.dp == 1);
  CHECK(gpu_count(setup->plan) == 2);
}

TEST_CASE("a row without a time counts for memory only") {
  PublishedRun run = small_run();
  run.cluster = "here";
  run.outcome = "ok";
  run.memory_gb = 10;
  RunEnvironment here;
  here.cluster = "here";
  here.runs_on = "dgx-a100-node";
  RunLoader loader(Catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data"), {here}, {});
  const ValidationSummary s = summarize({predict_run(loader, run)});
  CHECK(s.n == 0);
  CHECK(s.memory_n == 1);
}

TEST_CASE("runs that no constant was fitted on have wider intervals") {
  PublishedRun run = small_run();
  run.cluster = "here";
  run.outcome = "ok";
  run.step_s = 1;
  RunEnvironment here;
  here.cluster = "here";
  here.runs_on = "dgx-a100-node";
  RunEnvironment elsewhere = here;
  elsewhere.extra_spread = 0.1;
  const Catalogue catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data");
  RunLoader known(catalogue, {here}, {}), unknown(catalogue, {elsewhere}, {});
  const RunOutcome near = predict_run(known, run), far = predict_run(unknown, run);
  CHECK(far.step_s == near.step_s);
  CHECK(far.high_s > near.high_s);
}

}  // namespace tpsim
