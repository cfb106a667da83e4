// The prediction for a plan. Plain values, filled by sim/ and read by plans/, cli/ and gui/.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "core/machine/profile.h"
#include "core/plan/plan.h"
#include "core/plan/step_term.h"
#include "core/program/program.h"

namespace tpsim {

// One term of the step time.
struct Term {
  StepTerm kind{};
  Seconds time;
};

struct StageMemory {
  std::int64_t stage = 0;
  std::array<Bytes, kMemoryCategoryCount> by_category{};  // at the moment of the peak
  Bytes context;
  Bytes fragmentation;
  Bytes total() const;
};

// Shares of the device time by the source of the op times.
struct Sources {
  double exact_entries = 0;         // op found in the profile
  double interpolated_entries = 0;  // interpolated between measured entries
  double model = 0;                 // from DeviceModel constants
};

struct Prediction {
  Seconds step;
  Seconds step_low;  // 90 % interval
  Seconds step_high;
  double hardware_tflops_per_gpu = 0;  // includes recompute
  double model_tflops_per_gpu = 0;     // without recompute; causal attention as full square
  // Model TFLOP/s with half of the attention square, as Megatron logs since 2024.
  double half_mask_tflops_per_gpu = 0;
  double mfu = 0;  // model FLOPs over the peak for the linear layers' operand dtype
  double tokens_per_s = 0;
  double bubble_fraction = 0;  // idle share of the pipeline phase, mean over stages
  Bytes capacity;              // of one device
  Bytes peak;                  // of the fullest stage
  double p_oom = 0;            // probability that the fullest stage does not fit
  // With optimizer offload: memory used on a node's host by its GPUs, and available.
  Bytes host_memory, host_capacity;
  std::vector<StageMemory> memory;
  std::vector<Term> breakdown;     // every term, in the order of StepTerm
  std::int64_t busiest_stage = 0;  // the stage whose work the terms count
  Sources sources;
};

Seconds time_of(const Prediction& predicted, StepTerm term);

// A plan with a higher probability of running out of memory does not fit.
inline constexpr double kRefusedChance = 0.5;
// Whether a plan fits in memory. `most_chance` is the value of --max-oom.
inline bool fits_in_memory(const Prediction& predicted, double most_chance = kRefusedChance) {
  return predicted.p_oom <= most_chance;
}

struct PlannedRun {
  Plan plan;
  Prediction predicted;
};

}  // namespace tpsim
