// What a run's steps say together, once the first, which warm caches and allocators up, are left
// out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference_model/training.h"

namespace tpsim::cli {

struct MeasuredSteps {
  Seconds step;       // median
  Seconds mean;       // of the same steps
  double spread = 0;  // median absolute deviation over median
  std::int64_t count = 0;
  std::int64_t warm_up = 0;  // steps left out before these
  Seconds least;             // of the same steps
  double share_on_core = 1;  // mean, StepReport's
  StepTimes times;           // of one step, on average
  Bytes allocated;           // at most
  Bytes used;                // on the device altogether; 0 where nobody says
  // What predictions of memory are about: all that is in use where the device tells, else what was
  // allocated.
  Bytes peak() const { return used.value() > 0 ? used : allocated; }
};

// Leaves out the first two steps, where there are more.
MeasuredSteps measured_steps(const std::vector<StepReport>& reports);

// As bytes, for another process of this program. Labels stay behind: they point into this one.
std::string packed(const MeasuredSteps& steps);
MeasuredSteps unpacked_steps(std::string_view bytes);

// Times divided by `by`, counts too.
StepTimes divided(const StepTimes& times, std::int64_t by);

}  // namespace tpsim::cli
