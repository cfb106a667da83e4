// What a training log says about time, speed, memory and layout, whichever program wrote it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace tpsim {

struct LoggedStep {
  std::int64_t iteration = 0;
  std::int64_t global_batch = 0;  // 0: not said
  Seconds time;                   // zero where only a rate is said
  double tokens_per_s = 0;        // of all GPUs; 0: not said
  double tokens_per_s_gpu = 0;    // of one GPU; 0: not said
  double samples_per_s = 0;       // sequences, of all GPUs; 0: not said
  bool is_counted = false;        // the log gives it no number
  std::int64_t part_of = -1;      // the step of which this is one micro-batch; negative: of none
};

// Of one step, over the ranks that reported: equal for a log that prints one number.
struct LoggedTimer {
  Seconds least;
  Seconds most;
};

// The layout that a log states (evidence/logs/log_layout.h); 0 or empty where it states none.
struct LoggedLayout {
  std::int64_t gpus = 0;
  std::int64_t tp = 0;
  std::int64_t pp = 0;
  std::int64_t dp = 0;
  std::int64_t cp = 0;
  std::int64_t ep = 0;
  std::int64_t dp_shard = 0;      // FSDP: ranks that share one copy of the weights, of dp alone
  std::int64_t dp_replicate = 0;  // copies of the weights
  std::string recompute = {};     // torchtitan's mode of activation checkpointing
};

// The program that wrote a log, where its lines tell.
enum class LogProgram : std::uint8_t { kUnknown, kMegatron, kTorchTitan, kNemo };

struct TrainingLog {
  LogProgram program = LogProgram::kUnknown;
  LoggedLayout layout;
  std::vector<LoggedStep> steps;
  std::map<std::string, std::vector<LoggedTimer>> timers;  // by the name in the log
  std::map<std::int64_t, Bytes> reserved;                  // most that the allocator held, by rank
  // Of a router, as Megatron-Core prints them: without their coefficients, a step each. Shares of
  // tokens times mean scores, summed and times the experts: 1 where all get as many.
  std::vector<double> balancing_losses, z_losses;
  std::vector<double> tflops;   // of a GPU, as the log counts them, a step each
  std::int64_t iterations = 0;  // that its lines speak of: each may sum up many
  std::int64_t nan_losses = 0;  // lines whose loss is NaN or infinite
  std::int64_t skipped = 0;     // iterations that the loss scaler skipped
  Seconds summed_up;            // a mean step that the log's end states; zero: it does not
  // Label of the part of a reinforcement-learning step that was read, its training; empty: whole
  // steps.
  std::string training_part = {};
};

}  // namespace tpsim
