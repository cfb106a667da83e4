// Settings, reports and callbacks of a training run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/program/op_times.h"
#include "reference_model/step/optimizer.h"
#include "reference_model/step/rank_model.h"

namespace tpsim {

struct TrainingRun {
  ModelSpec model;
  Plan plan;
  TrainingOptions options;
  OptimizerSettings optimizer;
  BalanceSettings balance;     // of experts
  bool count_experts = false;  // fills StepReport::expert_load; implied by balance.bias_rate
  std::int64_t steps = 1;
  std::uint64_t seed = 1;
  std::filesystem::path checkpoint;      // initial weights; empty: random by seed
  std::filesystem::path state_folder;    // where training state is saved, and resumed from
  std::int64_t save_every = 0;           // in steps; 0: never
  std::filesystem::path dump_gradients;  // file for the first step's gradients before clipping
  bool time_ops = false;                 // fills StepReport::times
  bool record_work = false;              // micro-batches are recorded and replayed (CUDA graphs)
  AlgorithmChoices algorithms;           // from a profile of this device; may be empty
};

struct StepReport {
  std::int64_t step = 0;  // from 1
  double loss = 0;
  double grad_norm = 0;
  double expert_load = 0;  // busiest expert's tokens over the mean, for the worst layer
  double seconds = 0;
  std::int64_t peak_bytes = 0;  // allocated on this rank's device, highest so far
  std::int64_t used_bytes = 0;  // total memory in use on the device after the step; 0 if unknown
  StepTimes times;              // times of ops and collectives, if ops are timed
  double share_on_core = 1;     // CPU time over wall time outside collectives, if ops are timed
};

// Callbacks of a run; each may be empty.
struct TrainingHooks {
  // Called on the first rank with messages: from which state the run resumes, and which saved
  // states are damaged.
  std::function<void(const std::string&)> on_note;
  // Called on every rank after every step. If one returns true, all ranks save and stop.
  std::function<bool()> should_stop;
};

}  // namespace tpsim
