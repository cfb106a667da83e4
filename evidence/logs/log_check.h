// A training log held against the prediction: is the run as predicted, and if not, which term?
//
// The step is the median of the steps after warm-up that have the plan's batch. A gap is explained
// by the term whose timer exceeds its prediction by most. Without timers only the gap itself,
// unsteady steps and memory can be seen, and the report says so instead of guessing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "evidence/logs/gap_causes.h"
#include "evidence/logs/training_log.h"

namespace tpsim {

struct StageReserved {
  std::int64_t stage = 0;
  Bytes measured;   // most over the ranks of the stage that reported
  Bytes predicted;  // what the allocator holds: without context and communication buffers
};

struct LogCheck {
  std::int64_t steps_used = 0;
  std::int64_t warm_up = 0;      // steps left out before them; 0: there are too few for that
  std::int64_t other_batch = 0;  // left out for a batch that is not the plan's
  std::int64_t nan_losses = 0;   // of all steps
  std::int64_t skipped = 0;
  std::int64_t iterations = 0;  // that the log's lines speak of
  // Medians of the log's last half; negative: not said.
  double balancing_loss = -1, z_loss = -1;
  // Tokens of the busiest rank over the mean: what that loss speaks of, and what was predicted
  // with; zero without experts or loss.
  double logged_load = 0, predicted_load = 0;
  std::string training_part;  // see TrainingLog
  double logged_tflops = 0;   // of a GPU, as the log counts them; 0: not said
  // TFLOP/s per GPU at the measured step, counting all and half of causal attention.
  double model_tflops = 0, half_mask_tflops = 0;
  Seconds measured;
  Seconds predicted;
  Seconds low;  // 90 % interval of the prediction
  Seconds high;
  bool time_as_predicted = false;
  bool memory_as_predicted = true;  // also when the log says nothing of it
  std::vector<StageReserved> memory;
  std::vector<Finding> findings;  // largest cause first; empty when all is as predicted
  bool is_possible = true;        // no step is faster than the GPUs' peak allows
  bool is_sound = true;           // no loss is NaN, and not half of the steps were skipped
  bool as_predicted() const { return time_as_predicted && memory_as_predicted && is_sound; }
  // How much longer a step took than predicted, as a share of the prediction.
  double gap() const { return measured / predicted - 1; }
  // The same of the memory of the stage that is furthest off; 0 where the log states none.
  double memory_gap() const;
};

// Model FLOPs of a step that takes so long, with half of causal attention, over the peak of the
// plan's GEMMs. Above 1 the measurement is impossible.
double share_of_peak(const Scenario& scenario, const Plan& plan, Seconds step);

// An error when the log ran another layout, or no step of it has the plan's batch.
Result<LogCheck> check_log(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                           const TrainingLog& log);

}  // namespace tpsim
