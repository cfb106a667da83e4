// A few training steps of a small model on thread ranks: results that must be bit-equal for all
// software options.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_json.h"
#include "tests/reference_model/expert_training.h"

namespace tpsim::test {

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> gradients;  // of the first step
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

inline Outcome outcome_of(const TrainingRun& run) {
  Trained trained = trained_on_cpu(run);
  REQUIRE_FALSE(trained.gradients.empty());
  Outcome outcome{{}, {}, std::move(trained.gradients)};
  for (const StepReport& report : trained.reports) {
    outcome.losses.push_back(report.loss);
    outcome.norms.push_back(report.grad_norm);
  }
  return outcome;
}

inline TrainingRun run_of(const std::string& model, ParallelDegrees degrees, int zero) {
  TrainingRun run;
  run.model =
      *read_model(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/golden" / model / "config.json");
  run.model.seq = 12;
  run.plan.degrees = degrees;
  run.plan.dtype = DType::kFloat32;
  run.plan.micro_batch = 1;
  run.plan.global_batch = 8;
  run.plan.zero = zero;
  run.plan.recompute = Recompute::kNone;
  run.plan.sequence_parallel = degrees.tp > 1;
  run.plan.stage_layers = even_stage_layers(run.model.layers, degrees.pp, false);
  run.steps = 3;
  run.optimizer.rate = 1e-2;
  return run;
}

}  // namespace tpsim::test
