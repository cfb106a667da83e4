// A training run: what is trained how, what it reports, and what it may be told meanwhile.
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
  bool count_experts = false;  // fills StepReport::expert_load; so does a bias that moves
  std::int64_t steps = 1;
  std::uint64_t seed = 1;
  std::filesystem::path checkpoint;      // weights to start from; empty: drawn by seed
  std::filesystem::path state_folder;    // where training state is saved, and resumed from
  std::int64_t save_every = 0;           // steps; 0 never saves
  std::filesystem::path dump_gradients;  // of the first step, before clipping; empty: none
  bool time_ops = false;                 // fills StepReport::times
  bool record_work = false;              // micro-batches are recorded and replayed (CUDA graphs)
  AlgorithmChoices algorithms;           // of a profile of this device; may be empty
};

struct StepReport {
  std::int64_t step = 0;  // from 1
  double loss = 0;
  double grad_norm = 0;
  double expert_load = 0;  // the busiest expert's tokens over the mean, of the worst layer
  double seconds = 0;
  std::int64_t peak_bytes = 0;  // allocated on this rank's device, highest so far
  std::int64_t used_bytes = 0;  // in use on it altogether after the step; 0 where nobody says
  StepTimes times;              // where the step went, as far as ops and collectives account for it
  double share_on_core = 1;     // of what it did outside collectives; only where ops are timed
};

// Callbacks of a run; each may be empty.
struct TrainingHooks {
  // On the first rank only: where the run goes on, and which saved states are damaged.
  std::function<void(const std::string&)> on_note;
  // Called on every rank after every step. If one returns true, all ranks save and stop.
  std::function<bool()> should_stop;
};

}  // namespace tpsim
