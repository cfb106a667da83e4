// Trains a plan on this machine for a few steps, and compares each op, collective and stage with
// the prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/answers/comparison.h"
#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "profiler/measured_steps.h"

namespace tpsim::app {

struct ValidationRequest {
  Plan plan;
  std::string device = "cpu";
  std::int64_t steps = 12;
  std::function<void(double)> progress = {};  // gets the completed share
};

inline constexpr std::size_t kMostSuspects = 8;

// Measurement of all ranks of one plan.
struct Measurement {
  MeasuredSteps first;            // steps of the first rank, as `tpsim run` reports them
  StepTimes times;                // times per step, mean over ranks
  std::vector<Bytes> stage_peak;  // maximum over the ranks of a stage, by stage
  double share_on_core = 1;       // time on a core / elapsed time, minimum over ranks; 1 on GPUs
  double accounted = 0;           // (time in ops and collectives) / step time, over all ranks
};

struct Validation {
  Plan plan;
  std::string model;
  std::string profile;
  bool launched = false;   // ranks are processes of a launcher
  std::int64_t cores = 0;  // cores for the ranks of this process; 0 for GPUs and launched ranks
  Prediction predicted;
  std::vector<Bytes> predicted_memory;  // by stage
  Measurement measured;
  StepTimes predicted_times;  // mean over ranks, without waiting
  Seconds shortest;           // ops below this time are compared by kind only
  Comparison comparison;

  double step_error() const { return predicted.step / measured.first.step - 1; }
  // Returns the mean time per rank that collectives take longer than predicted for ranks that
  // arrive together. It consists of the pipeline bubble and of waiting for slower ranks.
  Seconds measured_wait() const {
    return total(measured.times.collectives) - total(predicted_times.collectives);
  }
  Seconds predicted_wait() const {
    return time_of(predicted, StepTerm::kBubble) + time_of(predicted, StepTerm::kStragglers);
  }
};

// Runs the plan with one rank for each GPU. Returns nothing in processes of a launcher that do not
// have the first rank.
Result<std::optional<Validation>> validated(NamedScenario loaded, const ValidationRequest& request);

// Returns the ops whose error matters most, up to kMostSuspects.
std::vector<ComparedTime> suspects_of(const Validation& v);

JsonValue validation_json(const Validation& v);

}  // namespace tpsim::app
