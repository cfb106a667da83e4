// Times and memory of the steps of a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/program/op_times.h"
#include "reference_model/training/training.h"

namespace tpsim {

// Statistics of the steps of a run. Excludes the first steps, which warm up caches and allocators.
struct MeasuredSteps {
  Seconds step;       // median
  Seconds mean;       // mean of the same steps
  double spread = 0;  // median absolute deviation / median
  std::int64_t count = 0;
  std::int64_t warm_up = 0;  // number of excluded first steps
  Seconds least;             // minimum of the same steps
  double share_on_core = 1;  // mean of StepReport::share_on_core
  StepTimes times;           // mean per step
  Bytes allocated;           // maximum of the steps
  Bytes used;                // total memory in use on the device; 0 if unknown
  // Returns the memory to compare with predictions: memory in use if the device reports it,
  // otherwise allocated memory.
  Bytes peak() const { return used.value() > 0 ? used : allocated; }
};

// Returns the statistics. Excludes the first two steps if there are more.
MeasuredSteps measured_steps(const std::vector<StepReport>& reports);

// Serializes the statistics for another process. Labels are not included, since they point into the
// memory of this process.
std::string packed(const MeasuredSteps& steps);
MeasuredSteps unpacked_steps(std::string_view bytes);

// Returns times and counts divided by `by`.
StepTimes divided(const StepTimes& times, std::int64_t by);

}  // namespace tpsim
