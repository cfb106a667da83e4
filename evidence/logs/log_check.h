// Compares a training log with the prediction, and names the term that differs.
//
// The step is the median of steps after warm-up with the plan's batch. A gap is explained by the
// term whose timer exceeds its prediction most. Without timers only the gap itself, unsteady steps
// and memory are reported.
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
  Bytes measured;   // maximum over the ranks of the stage in the log
  Bytes predicted;  // allocator's memory, without context and communication buffers
};

struct LogCheck {
  std::int64_t steps_used = 0;
  std::int64_t warm_up = 0;      // skipped steps; 0: too few steps to skip any
  std::int64_t other_batch = 0;  // skipped because of another batch
  std::int64_t nan_losses = 0;   // of all steps
  std::int64_t skipped = 0;
  std::int64_t iterations = 0;  // number of iterations in the log
  // Medians of the second half of the log; negative: not stated.
  double balancing_loss = -1, z_loss = -1;
  // Tokens of the busiest rank over the mean, derived from the balancing loss, and predicted. 0
  // without experts or loss.
  double logged_load = 0, predicted_load = 0;
  std::string training_part;  // see TrainingLog
  double logged_tflops = 0;   // per GPU, as the log counts FLOPs; 0: not stated
  // TFLOP/s per GPU at the measured step, counting all and half of causal attention.
  double model_tflops = 0, half_mask_tflops = 0;
  Seconds measured;
  Seconds predicted;
  Seconds low;  // 90 % interval of the prediction
  Seconds high;
  bool time_as_predicted = false;
  bool memory_as_predicted = true;  // also true if the log does not state memory
  std::vector<StageReserved> memory;
  std::vector<Finding> findings;  // largest cause first; empty if all is as predicted
  bool is_possible = true;        // the step is not faster than the GPUs' peak
  bool is_sound = true;           // no loss is NaN, and less than half of the steps were skipped
  bool as_predicted() const { return time_as_predicted && memory_as_predicted && is_sound; }
  // Measured over predicted step, minus one.
  double gap() const { return measured / predicted - 1; }
  // Likewise for the memory of the stage that differs most; 0 if not logged.
  double memory_gap() const;
};

// Returns the model FLOPs of a step with half of causal attention, as a share of the plan's GEMM
// peak. Above 1 the measurement is impossible.
double share_of_peak(const Scenario& scenario, const Plan& plan, Seconds step);

// Returns an error if the log has another layout, or no step with the plan's batch.
Result<LogCheck> check_log(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                           const TrainingLog& log);

}  // namespace tpsim
