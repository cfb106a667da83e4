// How much work is started unasked: an estimate is held against limits before anything begins.
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

// What one simulation of so many tasks takes, event by event.
WorkEstimate work_of_tasks(double tasks);

inline constexpr WorkLimits kNoLimits{Seconds(1e300), Bytes(1e300)};

// An error (kDoesNotFit) that says the estimate, and what lifts the limit, where it is above one.
// `what` begins the sentence: "a search of 4e+09 plans".
Status check_work(const std::string& what, const WorkEstimate& work, const WorkLimits& limits);

}  // namespace tpsim
