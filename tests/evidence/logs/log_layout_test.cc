// The layout in torchtitan's logs, compared with the plan, and the advice for the program of a log.
#include "evidence/logs/log_layout.h"

#include <fmt/format.h>

#include "evidence/logs/log_reader.h"
#include "tests/evidence/logs/logged_run.h"

namespace tpsim {
namespace {

using Run = test::LoggedRun;

// FSDP over 4 ranks with tp 2, pp 2 and full recompute.
Run sharded_run() {
  Run run;
  run.plan.zero = 3;
  run.plan.recompute = Recompute::kFull;
  run.predicted = simulate(run.scenario, run.plan).value();
  return run;
}

std::string step_of(const Run& run, double factor) {
  const double tokens = static_cast<double>(run.plan.global_batch * run.scenario.model.seq);
  const double rate =
      tokens / (factor * run.predicted.step.value()) / static_cast<double>(gpu_count(run.plan));
  return fmt::format(
      "[rank0]:[titan] 2026-05-18 16:04:30,000 - root - INFO - step:  1  loss:  7.5  grad_norm:  "
      "9.3  tps: {:.3f}  tflops: 1.0  mfu: 1.0%\n",
      rate);
}

// Returns the error of the check; empty if the logged layout is the plan's.
std::string refusal(const Run& run, const std::string& head) {
  const auto log = parse_training_log(head + step_of(run, 1), "titan.log");
  REQUIRE(log.ok());
  const auto check = check_log(run.scenario, run.plan, run.predicted, *log);
  return check.ok() ? "" : check.error().message;
}

std::string advice(const Run& run, const std::string& text) {
  const LogCheck check = test::checked(run, text);
  for (const Finding& finding : check.findings) {
    if (finding.cause == GapCause::kUnexplained) return finding.evidence;
  }
  return "";
}

constexpr const char* kHead = "[rank0]:[titan] 2026-05-18 16:04:29,088 - root - INFO - ";

std::string line(const std::string& text) { return kHead + text + "\n"; }

std::string mesh(const std::string& degrees) {
  return line("Building device mesh with parallelism: " + degrees);
}

const std::string kOwn = mesh("pp=2, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=1, etp=1");

}  // namespace

TEST_CASE(
    "the mesh in torchtitan's logs is compared with the plan, in the format of every release") {
  const Run run = sharded_run();
  for (const std::string& own :
       {kOwn, mesh("pp=2, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=1"),
        line("Building 3-D device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 2]"),
        line(
            "Building 4-D device mesh with ['pp', 'dp_replicate', 'dp_shard', 'tp'], [2, 1, 4, 2]"),
        line("Building 3-D device mesh with ['pp', 'dp', 'tp'], [2, 4, 2]"),
        line("Building 4-D device mesh with ['pp', 'dp_shard_mod_ep', 'dp_shard_in_ep', 'tp'], "
             "[2, 2, 2, 2]")}) {
    INFO(own);
    CHECK(refusal(run, own).empty());
  }
  for (const std::string& other : {mesh("pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=2, ep=1"),
                                   mesh("pp=2, dp_replicate=1, dp_shard=2, cp=1, tp=4, ep=1"),
                                   mesh("pp=2, dp_replicate=2, dp_shard=2, cp=1, tp=2, ep=1"),
                                   mesh("pp=2, dp_replicate=1, dp_shard=2, cp=2, tp=2, ep=1"),
                                   mesh("pp=2, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=2"),
                                   mesh("pp=2, dp_replicate=1, dp_shard=8, cp=1, tp=2, ep=1"),
                                   line("Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]"),
                                   line("Building 1-D device mesh with ['dp_shard'], [16]")}) {
    INFO(other);
    CHECK_THAT(refusal(run, other), Catch::StartsWith("the layout in the log is tp "));
  }
  CHECK_THAT(refusal(run, mesh("pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=2, ep=1")),
             Catch::Contains(
                 "the layout in the log is tp 2 pp 1 dp 8 (dp_shard 8, dp_replicate 1) on 16 GPUs, "
                 "but the plan's is tp 2 pp 2 dp 4 (dp_shard 4, dp_replicate 1) on 16 GPUs"));
  // Meshes of other programs have other dimension names, and are ignored.
  CHECK(refusal(run, line("Building 2-D device mesh with ['x', 'y'], [3, 5]")).empty());
}

TEST_CASE("a plan without sharded weights is dp_replicate in torchtitan") {
  Run run;
  run.plan.zero = 0;
  run.plan.recompute = Recompute::kFull;
  run.predicted = simulate(run.scenario, run.plan).value();
  CHECK(refusal(run, mesh("pp=2, dp_replicate=4, dp_shard=1, cp=1, tp=2, ep=1")).empty());
  CHECK_FALSE(refusal(run, kOwn).empty());
}

TEST_CASE("torchtitan's activation checkpointing is compared with the plan") {
  Run run = sharded_run();
  const std::string fsdp = line("Applied FSDP to the model");
  const auto applied = [&](const std::string& mode) {
    return kOwn + line("Applied " + mode + " activation checkpointing to the model") + fsdp;
  };
  struct Case {
    Recompute recompute;
    const char *word, *name;
  };
  for (const Case& one : {Case{Recompute::kFull, "full", "FullAC"},
                          Case{Recompute::kOps, "selective", "SelectiveAC"}}) {
    run.plan.recompute = one.recompute;
    CHECK(refusal(run, applied(one.word)).empty());
    CHECK(refusal(run, applied(one.name)).empty());
    CHECK(refusal(run, applied("memory_budget")).empty());
    // Another rank may print its mesh later.
    CHECK(refusal(run, applied(one.word) + kOwn + fsdp).empty());
    CHECK_THAT(refusal(run, kOwn + fsdp), Catch::Contains("activation checkpointing none"));
  }
  CHECK_THAT(refusal(run, applied("full")),
             Catch::Contains("activation checkpointing full, but the plan") &&
                 Catch::EndsWith("activation checkpointing selective"));
  run.plan.recompute = Recompute::kNone;
  CHECK(refusal(run, kOwn + fsdp).empty());
  CHECK_FALSE(refusal(run, applied("selective")).empty());
}

TEST_CASE("a gap without timers gets the advice of the log's own program") {
  const Run run = sharded_run();
  const std::string titan = advice(run, kOwn + step_of(run, 3));
  CHECK_THAT(titan, Catch::Contains("torchtitan"));
  CHECK_THAT(titan, !Catch::Contains("timing-log-level"));
  const double slow = 3 * run.predicted.step.value();
  CHECK_THAT(advice(run, fmt::format("iteration 1/ 9 | elapsed time per iteration (ms): {:.3f} |\n",
                                     1e3 * slow)),
             Catch::Contains("--timing-log-level 2"));
  CHECK_THAT(advice(run, fmt::format("global_step: 5 | train_step_timing in s: {:.4f}\n", slow)),
             Catch::Contains("NeMo"));
  CHECK_THAT(advice(run, fmt::format("step 10 | loss 4.2 | dt: {:.4f}s\n", slow)),
             Catch::Contains("torch.profiler"));
}

TEST_CASE("the memory gap is the largest one of the stages") {
  LogCheck check;
  CHECK(check.memory_gap() == 0);
  check.memory = {
      {0, Bytes(95), Bytes(100)}, {1, Bytes(80), Bytes(100)}, {2, Bytes(110), Bytes(100)}};
  CHECK(check.memory_gap() == Approx(-0.2));
}

}  // namespace tpsim
