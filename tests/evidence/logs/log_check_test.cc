// Logs in the formats of Megatron-LM, Megatron-DeepSpeed and tpsim, generated from a prediction
// with one deviation. The check names this deviation.
#include "evidence/logs/log_check.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "evidence/logs/log_reader.h"
#include "tests/evidence/logs/logged_run.h"

namespace tpsim {
namespace {

using test::checked;
using Run = test::LoggedRun;

// The iteration lines of Megatron-LM with timers; `slowest` is the compute of the slowest rank.
std::string megatron_lm(const Run& run, double step, double fastest, double slowest, double grads) {
  std::string text = "using world size: 16, data-parallel size: 4\n";
  for (int i = 1; i <= 8; ++i) {
    text += fmt::format(
        " [2026-01-01 00:00:0{}] iteration {:8}/     500 | consumed samples: {:12} | elapsed time "
        "per iteration (ms): {:.4f} | throughput per GPU (TFLOP/s/GPU): 80.2 | learning rate: "
        "1.0E-04 | global batch size: {:5} | lm loss: 9.8E+00 | loss scale: 1.0 |\n",
        i, i, i * run.plan.global_batch, i == 1 ? 9 * step : step, run.plan.global_batch);
    text += "    (min, max) time across ranks (ms):\n";
    text += fmt::format("    forward-compute ................................: ({:.4f}, {:.4f})\n",
                        fastest / 3, slowest / 3);
    text += fmt::format("    backward-compute ...............................: ({:.4f}, {:.4f})\n",
                        fastest * 2 / 3, slowest * 2 / 3);
    text += fmt::format("    all-grads-sync .................................: ({:.4f}, {:.4f})\n",
                        grads, grads);
  }
  return text;
}

// The iteration lines of BigScience's Megatron-DeepSpeed.
std::string megatron_deepspeed(const Run& run, double step, double compute, double grads) {
  std::string text;
  for (int i = 1; i <= 8; ++i) {
    text += fmt::format(
        " iteration {:8}/  128728 | consumed samples: {:12} | consumed tokens: {:12} | elapsed "
        "time "
        "per iteration (s): {:.7f} | learning rate: 1.944E-05 | global batch size: {:5} | lm loss: "
        "5.396257E+00 | samples per second: 1.051 | TFLOPs: 8.04 |\n",
        i, i, i, step / 1e3, run.plan.global_batch);
    text += fmt::format(
        "time (ms) | forward-compute: {:.4f} | backward-compute: {:.4f} | "
        "backward-params-all-reduce: {:.4f} | batch-generator: 0.01\n",
        compute / 3, compute * 2 / 3, grads);
  }
  return text;
}

// The table of tpsim run: time and memory with their units.
std::string own_log(const Run& run, double factor, double gib) {
  std::string text = fmt::format("{}, {}, on 16 ranks of this CPU, bf16\n\n",
                                 run.scenario.model.name, short_name(run.plan)) +
                     "  step        loss  grad norm       time    tokens/s  GFLOP/s*    memory**\n";
  for (int i = 1; i <= 8; ++i) {
    text += fmt::format("{:>6} {:>11.6f} {:>10.4f} {:>10} {:>11.0f} {:>9.2f} {:>11}\n", i, 9.8, 1.2,
                        fmt::format("{:.4f} ms", factor * run.step_ms()), 1e4, 93.1,
                        fmt::format("{:.4f} GiB", gib));
  }
  return text + "\n* model FLOPs per rank and second  ** peak allocated by the first rank\n";
}

double reserved_gib(const Run& run, std::size_t stage) {
  const StageMemory& memory = run.predicted.memory[stage];
  const auto buffers = static_cast<std::size_t>(MemoryCategory::kCommunication);
  return (memory.total() - memory.context - memory.by_category[buffers]).value() / kGiB;
}

GapCause first_cause(const LogCheck& check) {
  REQUIRE_FALSE(check.findings.empty());
  return check.findings.front().cause;
}

}  // namespace

TEST_CASE("the load of the busiest rank follows from the routers' losses") {
  Run run;
  const std::string plain =
      megatron_lm(run, run.step_ms(), run.compute_ms(), run.compute_ms(), run.gradients_ms());
  const auto check_at = [&](double balancing) {
    const std::string losses = fmt::format("load_balancing_loss: {} | z_loss: 0.25 | ", balancing);
    std::string text = plain;
    for (std::size_t at = 0; (at = text.find("loss scale", at)) != std::string::npos;) {
      text.insert(at, losses);
      at += losses.size() + 1;
    }
    return check_log(run.scenario, run.plan, run.predicted, *parse_training_log(text, "")).value();
  };
  const LogCheck dense = check_at(1.04);
  CHECK(dense.balancing_loss == Approx(1.04));
  CHECK(dense.z_loss == Approx(0.25));
  CHECK(dense.logged_load == 0);  // no experts
  run.scenario.model.experts.count = 16;
  run.scenario.model.experts.per_token = 2;
  run.plan.degrees.ep = 4;
  CHECK(check_at(1.0).logged_load == Approx(1));
  // The load of experts has a relative spread of 0.2, and each rank has four experts. The expected
  // maximum over four ranks is 1.03 standard deviations above the mean.
  CHECK(check_at(1.04).logged_load == Approx(1 + 0.2 / 2 * 1.03).epsilon(0.01));
  CHECK(check_at(1.16).logged_load > check_at(1.04).logged_load);
}

TEST_CASE("a run as predicted has no findings, in every format") {
  const Run run;
  const double c = run.compute_ms();
  for (const std::string& text : {megatron_lm(run, run.step_ms(), c, c, run.gradients_ms()),
                                  megatron_deepspeed(run, run.step_ms(), c, run.gradients_ms()),
                                  own_log(run, 1, reserved_gib(run, 0))}) {
    const LogCheck check = checked(run, text);
    INFO(text.substr(0, 200));
    CHECK(check.as_predicted());
    CHECK(check.findings.empty());
    CHECK(check.measured.value() == Approx(run.predicted.step.value()).epsilon(1e-3));
    CHECK(check.steps_used == 6);  // without 2 warm-up steps
  }
}

TEST_CASE("slower compute is named from the timers of both Megatrons") {
  const Run run;
  const double c = run.compute_ms();
  const double step = run.step_ms() + 0.5 * c;
  for (const std::string& text : {megatron_lm(run, step, 1.5 * c, 1.5 * c, run.gradients_ms()),
                                  megatron_deepspeed(run, step, 1.5 * c, run.gradients_ms())}) {
    const LogCheck check = checked(run, text);
    CHECK_FALSE(check.time_as_predicted);
    CHECK(first_cause(check) == GapCause::kSlowerCompute);
    CHECK(check.findings.size() == 1);
  }
}

TEST_CASE("a prediction that lacks a term is not compared with a log") {
  Run run;
  const double c = run.compute_ms();
  const std::string text =
      megatron_lm(run, 2 * run.step_ms(), 1.5 * c, 1.5 * c, run.gradients_ms());
  const auto log = parse_training_log(text, "training.log");
  REQUIRE(log.ok());
  std::erase_if(run.predicted.breakdown,
                [](const Term& term) { return term.kind == StepTerm::kAttention; });
  CHECK_THROWS_AS(check_log(run.scenario, run.plan, run.predicted, *log), BugError);
}

TEST_CASE("slower links are named when gradients take longer") {
  const Run run;
  const double c = run.compute_ms();
  const double more = run.step_ms();
  for (const std::string& text :
       {megatron_lm(run, run.step_ms() + more, c, c, run.gradients_ms() + more),
        megatron_deepspeed(run, run.step_ms() + more, c, run.gradients_ms() + more)}) {
    CHECK(first_cause(checked(run, text)) == GapCause::kSlowerLinks);
  }
}

TEST_CASE("one slow rank is a straggler, not slower compute") {
  const Run run;
  const double c = run.compute_ms();
  const LogCheck check =
      checked(run, megatron_lm(run, run.step_ms() + c, c, 2 * c, run.gradients_ms()));
  CHECK(first_cause(check) == GapCause::kStraggler);
}

TEST_CASE("tpsim's own log is read for time and memory") {
  const Run run;
  const LogCheck slow = checked(run, own_log(run, 2, reserved_gib(run, 0)));
  CHECK(slow.measured.value() == Approx(2 * run.predicted.step.value()).epsilon(1e-3));
  CHECK(first_cause(slow) == GapCause::kUnexplained);
  const LogCheck full = checked(run, own_log(run, 1, 2 * reserved_gib(run, 0)));
  CHECK(full.time_as_predicted);
  CHECK(first_cause(full) == GapCause::kMemory);
}

TEST_CASE("slow data loading is attributed to the host") {
  const Run run;
  std::string text =
      megatron_deepspeed(run, 2 * run.step_ms(), run.compute_ms(), run.gradients_ms());
  const std::string quick = "batch-generator: 0.01";
  for (std::size_t at = text.find(quick); at != std::string::npos; at = text.find(quick, at + 1)) {
    text.replace(at, quick.size(), fmt::format("batch-generator: {:.4f}", run.step_ms()));
  }
  CHECK(first_cause(checked(run, text)) == GapCause::kHostBound);
}

TEST_CASE("time outside of all timers is attributed to the host") {
  const Run run;
  const double c = run.compute_ms();
  for (const std::string& text :
       {megatron_lm(run, 2 * run.step_ms(), c, c, run.gradients_ms()),
        megatron_deepspeed(run, 2 * run.step_ms(), c, run.gradients_ms())}) {
    const LogCheck check = checked(run, text);
    CHECK(first_cause(check) == GapCause::kHostBound);
    CHECK_THAT(check.findings.front().evidence, Catch::Contains("outside all timers"));
  }
}

TEST_CASE("stages of unequal length are not a straggler") {
  Run run;
  run.plan.stage_layers = {2, 6};
  run.predicted = simulate(run.scenario, run.plan).value();
  const double c = run.compute_ms();
  const std::string text = megatron_lm(run, run.step_ms() + c, 0.6 * c, 2 * c, run.gradients_ms());
  CHECK(first_cause(checked(run, text)) == GapCause::kSlowerCompute);
}

TEST_CASE("a log of another layout is refused, in the formats of both Megatrons") {
  const Run run;
  const std::string step = "iteration 3/ 9 | elapsed time per iteration (ms): 5.0 |\n";
  const auto judged = [&](const std::string& head) {
    return check_log(run.scenario, run.plan, run.predicted,
                     *parse_training_log(head + "\n" + step, "a.log"));
  };
  CHECK(
      judged("using world size: 16, data-parallel size: 4, context-parallel size: 1, hierarchical "
             "context-parallel sizes: None, tensor-model-parallel size: 2, "
             "pipeline-model-parallel size: 2")
          .ok());
  CHECK(judged("using world size: 16, data-parallel-size: 4, tensor-model-parallel size: 2, "
               "pipeline-model-parallel size: 2 ")
            .ok());
  const auto other = judged(
      "using world size: 16, data-parallel-size: 2, tensor-model-parallel "
      "size: 4, pipeline-model-parallel size: 2 ");
  REQUIRE_FALSE(other.ok());
  CHECK_THAT(other.error().message, Catch::Contains("tp 4 pp 2 dp 2"));
  CHECK_FALSE(judged("using world size: 32").ok());
  const auto context = judged(
      "using world size: 16, data-parallel size: 2, context-parallel size: 2, hierarchical "
      "context-parallel sizes: None, tensor-model-parallel size: 2, pipeline-model-parallel size: "
      "2");
  REQUIRE_FALSE(context.ok());
  CHECK_THAT(context.error().message, Catch::Contains("tp 2 pp 2 dp 2 cp 2 on 16 GPUs"));
  CHECK_FALSE(judged("using world size: 16, context-parallel size: 4").ok());
}

TEST_CASE("garbled logs are errors or findings, never a bug") {
  const Run run;
  const double c = run.compute_ms();
  const std::string good = "using world size: 16, data-parallel-size: 4\n" +
                           megatron_lm(run, 2 * run.step_ms(), c, 2 * c, run.gradients_ms()) +
                           megatron_deepspeed(run, run.step_ms(), c, 1) +
                           own_log(run, 1, reserved_gib(run, 0)) +
                           "[Rank 8] memory (MB) | max reserved: 5.0\n";
  std::mt19937 random(7);
  const std::string noise = "0123456789.e-|:(),\n\r\t\xff nifRank[]";
  int judged = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = good;
    for (int change = 0; change < 40; ++change) {
      text[random() % text.size()] = noise[random() % noise.size()];
    }
    text.resize(random() % text.size());
    const auto log = parse_training_log(text, "training.log");
    if (!log.ok()) continue;
    const auto check = check_log(run.scenario, run.plan, run.predicted, *log);
    if (!check.ok()) continue;
    ++judged;
    CHECK(std::isfinite(check->measured.value()));
    for (const StageReserved& row : check->memory) CHECK(std::isfinite(row.measured.value()));
  }
  CHECK(judged > 100);
}

TEST_CASE("memory is compared by stage, without memory outside of the allocator") {
  const Run run;
  const std::string steps = own_log(run, 1, reserved_gib(run, 0));
  const auto line = [](std::int64_t rank, double gib) {
    return fmt::format(
        "[Rank {}] (after 1 iterations) memory (MB) | allocated: 1.0 | max allocated: "
        "2.0 | reserved: 3.0 | max reserved: {:.3f}\n",
        rank, gib * 1024);
  };
  // Ranks 8 to 15 hold stage 1 of 2.
  LogCheck check = checked(run, steps + line(8, reserved_gib(run, 1)));
  REQUIRE(check.memory.size() == 2);
  CHECK(check.memory_as_predicted);
  check = checked(run, steps + line(8, 1.5 * reserved_gib(run, 1)));
  CHECK(check.time_as_predicted);
  CHECK_FALSE(check.memory_as_predicted);
  CHECK(first_cause(check) == GapCause::kMemory);
  CHECK_THAT(check.findings.front().evidence, Catch::Contains("stage 1"));
}

TEST_CASE("a gap without timers has no cause, and a faster run is reported") {
  const Run run;
  const auto line = [&](double factor) {
    return fmt::format(
        "iteration 7/ 9 | elapsed time per iteration (ms): {:.4f} | global batch size: "
        "{} |\n",
        factor * run.step_ms(), run.plan.global_batch);
  };
  CHECK(first_cause(checked(run, line(2))) == GapCause::kUnexplained);
  CHECK(first_cause(checked(run, line(0.5))) == GapCause::kFaster);
}

TEST_CASE("occasional slow steps are a straggler") {
  const Run run;
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("iteration {}/ 40 | elapsed time per iteration (ms): {:.4f} |\n", i,
                        run.step_ms() * (i % 8 == 7 ? 2 : 1));
  }
  const LogCheck check = checked(run, text);
  CHECK(check.time_as_predicted);
  CHECK(first_cause(check) == GapCause::kStraggler);
}

TEST_CASE("logs that cannot be judged are errors") {
  const Run run;
  for (const char* text : {"", "nothing here\n", "iteration x | elapsed time per iteration (ms): 3",
                           "iteration 3 | elapsed time per iteration (ms): nan |",
                           "     3    9.8    1.2    0 s    1    2    3 GiB\n", "\xff\xfe(: (,)"}) {
    CHECK_FALSE(parse_training_log(text, "training.log").ok());
  }
  const auto ramp = parse_training_log(
      "iteration 3/ 9 | elapsed time per iteration (ms): 5.0 | global batch size: 2 |", "a.log");
  REQUIRE(ramp.ok());
  CHECK_FALSE(check_log(run.scenario, run.plan, run.predicted, *ramp).ok());
  const auto crowd = parse_training_log(
      "iteration 3/ 9 | elapsed time per iteration (ms): 5.0 |\n[Rank 99] | max reserved: 5.0\n",
      "a");
  REQUIRE(crowd.ok());
  CHECK_FALSE(check_log(run.scenario, run.plan, run.predicted, *crowd).ok());
}

TEST_CASE("logs of every program are read, with their rates and their times") {
  const auto first = [](const std::string& text) {
    const TrainingLog log = parse_training_log(text, "it.log").value();
    return log.steps.front();
  };
  CHECK(
      first(
          " iteration       10/     500 | elapsed time per iteration (ms): 12936.1 | global batch "
          "size:   256 |\n")
          .time.value() == Approx(12.9361));
  CHECK(first("iteration 10/ 500 | elapsed time per iteration (s): 105.20 | TFLOPs: 150.1 |\n")
            .time.value() == Approx(105.2));
  const LoggedStep nemo = first(
      "Training epoch 0, iteration 5/99 | lr: 6e-06 | global_batch_size: 512 | global_step: 5 | "
      "reduced_train_loss: 11.03 | train_step_timing in s: 6.32 | consumed_samples: 3072\n");
  CHECK(nemo.time.value() == Approx(6.32));
  CHECK(nemo.global_batch == 512);
  CHECK(nemo.iteration == 5);
  const LoggedStep titan = first(
      "[rank0]:[titan] 2026-01-01 12:00:00,000 - root - INFO - \033[31mstep: 10  \033[32mloss:  "
      "4.2113  \033[33mmemory: 34.20GiB(43.1%)  \033[34mtps: 6,210  \033[36mtflops: 310.25  "
      "\033[35mmfu: 31.36%\033[39m\n");
  CHECK(titan.tokens_per_s_gpu == 6210);
  CHECK(titan.iteration == 10);
  CHECK(first("01/01/2026 12:00:00 [INFO|DP=0|PP=0|TP=0]: iteration: 10 / 100 | consumed_tokens: "
              "1.31M | "
              "elapsed_time_per_iteration_ms: 1.23K | tokens_per_sec: 56K | lm_loss: 10.4\n")
            .time.value() == Approx(1.23));
  CHECK(first("{'loss': 1.2}\r 10%|█         | 10/100 [01:20<12:00,  8.01s/it]\r").time.value() ==
        Approx(8.01));
  CHECK(first(" 10%|█   | 10/100 [00:04<00:36,  2.50it/s]\n").time.value() == Approx(0.4));
  CHECK(first("iter 10: loss 4.2113, time 820.11ms, mfu 30.20%\n").time.value() == Approx(0.82011));
  CHECK(first("step 10 | loss 4.2 | dt: 0.82s\n").time.value() == Approx(0.82));
  CHECK(first("step   10/19560 | loss 7.11 | norm 1.5 | 45.0% bf16 MFU | 639000 tok/s\n")
            .tokens_per_s == 639000);
  CHECK(first("step:10 loss: 3.1 639,000 tokens/s\n").tokens_per_s == 639000);
  CHECK(first("    10   9.812345     1.2345     1.25 s        1638     93.10    12.5 GiB\n")
            .time.value() == Approx(1.25));
}

TEST_CASE("a rate becomes a time by the plan's tokens") {
  const Run run;
  const double tokens = static_cast<double>(run.plan.global_batch * run.scenario.model.seq);
  const double rate =
      tokens / run.predicted.step.value() / static_cast<double>(gpu_count(run.plan));
  std::string text;
  for (int i = 1; i <= 8; ++i) {
    text +=
        fmt::format("step: {}  loss: 4.0  memory: 0.0GiB(0%)  tps: {:.3f}  tflops: 1.0\n", i, rate);
  }
  TrainingLog log = parse_training_log(text, "it.log").value();
  log.reserved.clear();
  const LogCheck check = check_log(run.scenario, run.plan, run.predicted, log).value();
  CHECK(check.time_as_predicted);
  CHECK(std::abs(check.gap()) < 1e-4);
  CHECK(check.warm_up == 2);
  CHECK(check.logged_tflops == 1);
}

}  // namespace tpsim
