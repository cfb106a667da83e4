// What tpsim says about a plan. Plain values, filled by sim/ and read by plans/, cli/ and gui/.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/profile.h"
#include "core/program.h"
#include "core/units.h"

namespace tpsim {

// A share of the step. All terms of a prediction add up to the step exactly.
struct Term {
  std::string name;  // stable key: "matmul", "pipeline_bubble", ...
  Seconds time;
  std::string formula;  // in words and symbols
  std::string inputs;   // the symbols' values in this plan
  std::string source;   // where the constants come from
};

struct StageMemory {
  std::int64_t stage = 0;
  std::array<Bytes, kMemoryCategoryCount> by_category{};  // at the moment of the peak
  Bytes context;
  Bytes fragmentation;
  Bytes total() const;
};

// Which share of the device time was priced from what.
struct Sources {
  double exact_entries = 0;         // op found in the profile
  double interpolated_entries = 0;  // between measured entries
  double model = 0;                 // from DeviceModel constants
};

struct Prediction {
  Seconds step;
  Seconds step_low;  // 90 % interval
  Seconds step_high;
  double hardware_tflops_per_gpu = 0;  // counts recompute
  double model_tflops_per_gpu = 0;     // does not
  double mfu = 0;                      // model FLOPs over matmul peak
  double tokens_per_s = 0;
  double bubble_fraction = 0;  // idle share of the pipeline phase, mean over stages
  Bytes capacity;              // of one device
  Bytes peak;                  // of the fullest stage
  double p_oom = 0;            // probability that the fullest stage does not fit
  // With the optimizer offloaded: what a node's host holds for its GPUs, and has.
  Bytes host_memory, host_capacity;
  std::vector<StageMemory> memory;
  std::vector<Term> breakdown;
  Sources sources;
};

struct PlannedRun {
  Plan plan;
  Prediction predicted;
};

}  // namespace tpsim
