// Checkpoints of a long run: interval, and the expected time with failures.
//
// Failures are a Poisson process over the whole run, including restarts. Training pauses until a
// synchronous checkpoint is written. For an async checkpoint, training pauses only for the copy to
// host memory, and the hosts write during training. Not modelled: slower steps during async writes,
// and failures of storage.
#pragma once

#include <cstdint>

#include "core/base/units.h"

namespace tpsim {

struct FailureModel {
  Seconds work;      // time of the run without checkpoints and failures
  Seconds interval;  // work between two checkpoints; the last one may be shorter
  Seconds write;     // pause of the run for a checkpoint
  // Async write: time from the end of the pause until the checkpoint can be loaded.
  Seconds behind;
  Seconds restart;  // time from a failure until work resumes
  Seconds mtbf;     // mean time between failures of any node of the run
};

// Returns the interval tau that minimizes expected_wall(). With M = mtbf and pause C = write: tau =
// M x where x + ln(1 - x) = -C / M, the zero of the derivative of (e^((tau + C) / M) - 1) / tau.
// The optimum does not depend on restart and async write times.
Seconds best_interval(Seconds write, Seconds mtbf);

// Returns sqrt(2 C M) with C = write and M = mtbf: Young 1974, first order in C/M.
Seconds young_interval(Seconds write, Seconds mtbf);

// Returns sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, and M if C >= 2M: Daly 2006, eq.
// 37.
Seconds daly_interval(Seconds write, Seconds mtbf);

std::int64_t checkpoint_count(const FailureModel& model);

// Returns the expected wall time of the whole run. A segment is an interval with its checkpoint.
// With M = mtbf and R = restart, a segment of s seconds that restarts after every failure takes M
// e^(R/M) (e^(s/M) - 1) (Daly 2006, eq. 13 without its approximations). With async writes of W
// seconds, the first checkpoint can be loaded after s + W. Each later one can be loaded s after the
// previous one, unless the run fails and needs s + W again: M e^((R + s + W)/M) (1 - e^(-s/M)).
// Requires interval + write >= behind.
Seconds expected_wall(const FailureModel& model);

// Largest segment length / MTBF. Beyond this limit the run practically never ends.
inline constexpr double kMostFailuresPerStretch = 30;
bool can_end(const FailureModel& model);

}  // namespace tpsim
