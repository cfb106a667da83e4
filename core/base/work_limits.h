// Limits on tpsim's own work. A command compares an estimate of its work with the limits before it
// starts.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/units.h"

namespace tpsim {

struct WorkEstimate {
  Seconds time;  // of one core
  Bytes memory;
};

struct WorkLimits {
  Seconds time{600};
  Bytes memory{kGiB};
};

// Estimates one event-driven simulation of this number of tasks.
WorkEstimate work_of_tasks(double tasks);

inline constexpr WorkLimits kNoLimits{Seconds(1e300), Bytes(1e300)};

// Error (kDoesNotFit) with the estimate and the option that lifts the limit, if the estimate
// exceeds a limit. `what` begins the sentence: "a search of 4e+09 plans".
Status check_work(const std::string& what, const WorkEstimate& work, const WorkLimits& limits);

}  // namespace tpsim
