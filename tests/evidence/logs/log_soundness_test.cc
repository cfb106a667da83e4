// Logs with NaN losses, impossible speeds, or a batch that differs from the plan.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "evidence/logs/log_reader.h"
#include "tests/evidence/logs/logged_run.h"

namespace tpsim {
namespace {

using test::checked;
using Run = test::LoggedRun;

}  // namespace

TEST_CASE("a run with a NaN loss is not reported as predicted") {
  const Run run;
  std::string sound;
  for (int i = 1; i <= 8; ++i) {
    sound += fmt::format(
        " iteration {}/ 500 | elapsed time per iteration (ms): {:.4f} | lm loss: 9.8E+00 | "
        "number of skipped iterations:   0 |\n",
        i, run.step_ms());
  }
  const auto checked = [&](const std::string& text) {
    return check_log(run.scenario, run.plan, run.predicted,
                     parse_training_log(text, "it.log").value())
        .value();
  };
  CHECK(checked(sound).as_predicted());
  std::string nan = sound;
  nan.replace(nan.find("9.8E+00"), 7, "nan");
  CHECK(checked(nan).nan_losses == 1);
  CHECK_FALSE(checked(nan).as_predicted());
  CHECK(checked(nan).findings.front().cause == GapCause::kUnsound);
  std::string skipped = sound;
  for (std::size_t at = 0; (at = skipped.find("iterations:   0", at)) != std::string::npos;) {
    skipped.replace(at, 15, "iterations:   1");
  }
  CHECK(checked(skipped).skipped == 8);
  CHECK_FALSE(checked(skipped).is_sound);
}

TEST_CASE("a log that states another batch is refused, one that rounds it is not") {
  Run run;
  run.plan.global_batch = 1024;
  const auto judged = [&](const std::string& text) {
    return check_log(run.scenario, run.plan, run.predicted,
                     parse_training_log(text, "it.log").value());
  };
  const std::string nanotron =
      "iteration: 3 / 9 | elapsed_time_per_iteration_ms: 1.2K | global_batch_size: ";
  CHECK(judged(nanotron + "1.02K\n").ok());
  CHECK_FALSE(judged(nanotron + "512\n").ok());
  const std::string titan = "step:  3  loss:  3.1  memory:  9.6GiB(52.3%)  tps: 5,856\n";
  const std::string head = "initialized with local batch size 8, global batch size {}, sequence\n";
  CHECK(judged(fmt::format(fmt::runtime(head), 1024) + titan).ok());
  CHECK_FALSE(judged(fmt::format(fmt::runtime(head), 256) + titan).ok());
}

TEST_CASE("speeds above the GPU's peak are reported as impossible") {
  const Run run;
  const double peak = run.scenario.profile.device.matmul_peak.value() / 1e12;
  const auto line = [&](double tflops, double ms) {
    return fmt::format("iteration 7/ 9 | elapsed time per iteration (ms): {:.6f} | TFLOPs: {} |\n",
                       ms, tflops);
  };
  const auto is_impossible = [&](const std::string& text) {
    for (const Finding& finding : checked(run, text).findings) {
      if (finding.cause == GapCause::kImpossible) return true;
    }
    return false;
  };
  const double ours = run.predicted.model_tflops_per_gpu;
  CHECK(checked(run, line(1, 2 * run.step_ms())).model_tflops == Approx(ours / 2));
  CHECK_FALSE(is_impossible(line(0.5 * peak, run.step_ms())));
  CHECK(is_impossible(line(1.1 * peak, run.step_ms())));
  CHECK(checked(run, line(1.1 * peak, run.step_ms())).is_possible);  // may count differently
  const std::string hasty =
      line(1, 0.9 * ours / peak * run.step_ms());  // perhaps times of micro-batches
  CHECK(is_impossible(hasty));
  CHECK_FALSE(checked(run, hasty).is_possible);
}

TEST_CASE("one skipped step in ten is accepted") {
  const Run run;
  std::string text;
  for (int i = 10; i <= 80; i += 10) {
    text += fmt::format(
        "iteration {}/ 500 | elapsed time per iteration (ms): {:.4f} | lm loss: 9.8E+00 | number "
        "of "
        "skipped iterations:   1 |\n",
        i, run.step_ms());
  }
  CHECK(checked(run, text).as_predicted());
  CHECK(checked(run, text).skipped == 8);
}

TEST_CASE("steps of a batch ramp are excluded and counted") {
  const Run run;
  std::string text;
  for (int i = 1; i <= 12; ++i) {
    const bool is_ramp = i <= 5;
    text += fmt::format(
        "iteration {}/ 500 | elapsed time per iteration (ms): {:.4f} | global batch size: {} |\n",
        i, run.step_ms() / (is_ramp ? 8 : 1), is_ramp ? 1 : run.plan.global_batch);
  }
  const LogCheck check = checked(run, text);
  CHECK(check.as_predicted());
  CHECK(check.other_batch == 5);
  CHECK(check.steps_used == 5);
}

}  // namespace tpsim
