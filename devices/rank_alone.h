// Runs one rank of a plan alone. A collective waits for its predicted duration.
#pragma once

#include <cstdint>
#include <string>

#include "app/answers/comparison.h"
#include "app/scenario/named_scenario.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "profiler/measured_steps.h"
#include "reference_model/training/training.h"

namespace tpsim::app {

struct RankMeasurement {
  std::string model, plan, cluster, profile;
  std::int64_t rank = 0, ranks = 0;
  MeasuredSteps measured;
  StepTimes predicted;
  Bytes predicted_peak;
  Comparison comparison;

  Seconds waiting() const { return total(measured.times.collectives); }
  double accounted() const { return (total(measured.times.ops) + waiting()) / measured.mean; }
  Seconds predicted_step() const { return total(predicted.ops) + total(predicted.collectives); }
};

Result<RankMeasurement> rank_alone(const NamedScenario& planned, const TrainingRun& run,
                                   const TokenSource& tokens, std::int64_t rank,
                                   const std::string& device);

// {"version": "tpsim-rank-report/1", ...}
JsonValue rank_json(const RankMeasurement& m);

}  // namespace tpsim::app
