// A small plan, its prediction, and logs compared with it.
#pragma once

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>

#include "evidence/logs/log_check.h"
#include "evidence/logs/log_reader.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::test {

struct LoggedRun {
  Scenario scenario = small_scenario(small_bloom());
  Plan plan = plan_of(scenario.model, {.tp = 2, .pp = 2, .dp = 4}, 8);
  Prediction predicted = simulate(scenario, plan).value();

  double ms(std::initializer_list<StepTerm> terms) const {
    double sum = 0;
    for (const StepTerm term : terms) sum += time_of(predicted, term).value() * 1e3;
    return sum;
  }
  double step_ms() const { return predicted.step.value() * 1e3; }
  double compute_ms() const {
    return ms({StepTerm::kMatmul, StepTerm::kAttention, StepTerm::kElementwise,
               StepTerm::kTensorCommunication, StepTerm::kZeroCommunication, StepTerm::kHostWait});
  }
  double gradients_ms() const {
    return ms({StepTerm::kGradientReduction, StepTerm::kTiedEmbedding});
  }
};

inline LogCheck checked(const LoggedRun& run, const std::string& text) {
  const auto log = parse_training_log(text, "training.log");
  REQUIRE(log.ok());
  const auto check = check_log(run.scenario, run.plan, run.predicted, *log);
  REQUIRE(check.ok());
  return *check;
}

}  // namespace tpsim::test
