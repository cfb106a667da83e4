// Compares a training log with the prediction, and reports which phase of the step explains the
// difference.
//
// The measured step is the median of the steps that have the plan's batch, after warm-up. A slow
// step is explained by the phases whose timers exceed their prediction. For a log without timers,
// only the total difference, unsteady steps and memory are compared.
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
  Bytes predicted;  // as counted by the allocator: without CUDA context and NCCL buffers
};

struct LogCheck {
  std::int64_t steps_used = 0;
  std::int64_t warm_up = 0;      // skipped first steps; 0: too few to skip any
  std::int64_t other_batch = 0;  // steps skipped because their batch differs from the plan's
  std::int64_t nan_losses = 0;   // number of steps with NaN or infinite loss
  std::int64_t skipped = 0;
  std::int64_t iterations = 0;  // number of iterations in the log
  // Router losses: median of the second half of the log; negative if not stated.
  double balancing_loss = -1, z_loss = -1;
  // Load imbalance: tokens on the busiest expert-parallel rank over the mean. `logged_load` is
  // derived from the balancing loss. 0 for dense models, or if the loss is not stated.
  double logged_load = 0, predicted_load = 0;
  std::string training_part;  // see TrainingLog::training_part
  double logged_tflops = 0;   // per GPU, with the log's own FLOP count; 0: not stated
  // TFLOP/s per GPU at the measured step time, with full and with half the attention FLOPs.
  double model_tflops = 0, half_mask_tflops = 0;
  Seconds measured;
  Seconds predicted;
  Seconds low;  // 90 % interval of the prediction
  Seconds high;
  bool time_as_predicted = false;
  bool memory_as_predicted = true;  // also true if the log does not state memory
  std::vector<StageReserved> memory;
  std::vector<Finding> findings;  // largest first; empty if the run is as predicted
  bool is_possible = true;        // the step needs at most the GPU's peak rate
  bool is_sound = true;           // no loss is NaN, and less than half of the steps were skipped
  bool as_predicted() const { return time_as_predicted && memory_as_predicted && is_sound; }
  // Relative difference of the step time: measured over predicted, minus one.
  double gap() const { return measured / predicted - 1; }
  // Relative difference of the memory, for the stage where it is largest; 0 if not logged.
  double memory_gap() const;
};

// Returns the part of a stage's memory that PyTorch's allocator holds: without CUDA context and
// NCCL buffers.
Bytes allocator_share(const StageMemory& memory);

// Returns the MFU relative to the plan's GEMM peak, counting half of causal attention. A value
// above 1 shows that the measurement is wrong.
double share_of_peak(const Scenario& scenario, const Plan& plan, Seconds step);

// Returns an error if the log has another parallel layout, or no step with the plan's batch.
Result<LogCheck> check_log(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                           const TrainingLog& log);

}  // namespace tpsim
