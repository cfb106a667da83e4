// Contents of a training log, in the same form for all programs: step times, rates, memory and
// layout.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace tpsim {

struct LoggedStep {
  std::int64_t iteration = 0;
  std::int64_t global_batch = 0;  // 0: not stated
  Seconds time;                   // zero if only a rate is stated
  double tokens_per_s = 0;        // of all GPUs; 0: not stated
  double tokens_per_s_gpu = 0;    // of one GPU; 0: not stated
  double samples_per_s = 0;       // sequences, of all GPUs; 0: not stated
  bool is_counted = false;        // the log states no step number; lines are counted
  std::int64_t part_of = -1;      // step that this micro-batch belongs to; negative: a whole step
};

// One timer in one step: minimum and maximum over the reporting ranks. Both are equal if the log
// has one number.
struct LoggedTimer {
  Seconds least;
  Seconds most;
};

// Parallel layout stated by a log (evidence/logs/log_layout.h). 0 or empty: not stated.
struct LoggedLayout {
  std::int64_t gpus = 0;
  std::int64_t tp = 0;
  std::int64_t pp = 0;
  std::int64_t dp = 0;
  std::int64_t cp = 0;
  std::int64_t ep = 0;
  std::int64_t dp_shard = 0;      // FSDP: ranks that share one copy of the weights, excluding cp
  std::int64_t dp_replicate = 0;  // copies of the weights
  std::string recompute = {};     // torchtitan's mode of activation checkpointing
};

// Program that wrote the log, if its lines identify it.
enum class LogProgram : std::uint8_t { kUnknown, kMegatron, kTorchTitan, kNemo };

struct TrainingLog {
  LogProgram program = LogProgram::kUnknown;
  LoggedLayout layout;
  std::vector<LoggedStep> steps;
  std::map<std::string, std::vector<LoggedTimer>> timers;  // key: the log's name of the timer
  std::map<std::int64_t, Bytes> reserved;  // key: rank; peak memory reserved by the allocator
  // Router losses per step as Megatron-Core prints them, before multiplication by their
  // coefficients. The balancing loss is (number of experts) x sum over experts of (token share x
  // mean score). A perfectly balanced router has loss 1.
  std::vector<double> balancing_losses, z_losses;
  std::vector<double> tflops;   // per GPU and step, with the log's own FLOP count
  std::int64_t iterations = 0;  // iterations that the lines cover; one line may cover many
  std::int64_t nan_losses = 0;  // lines with a NaN or infinite loss
  std::int64_t skipped = 0;     // iterations skipped by the loss scaler
  Seconds summed_up;            // mean step time stated at the end of the log; zero: not stated
  // Label of the training time in a reinforcement-learning log, such as "timing_s/update_actor", if
  // steps contain only the training part. Empty for whole steps.
  std::string training_part = {};
};

}  // namespace tpsim
