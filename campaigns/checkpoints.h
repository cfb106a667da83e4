// Checkpoints of a long run: size, interval, and the expected time with failures.
//
// Failures are a Poisson process over the whole run, including restarts. Training pauses for a
// checkpoint: until it is written, or until it is copied to the hosts, which then write it during
// training. Not modelled: slower steps during async writes, and failures of storage.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Weights in the plan's dtype once, and per stage the optimizer's state: both moments of Adam in
// their dtype and the fp32 master weights, as the software keeps them (docs/decisions/
// master-weights.md). Software that casts fp32 weights saves these alone. Both end stages of a
// pipeline hold tied word embeddings, so their optimizer state is written twice.
Bytes checkpoint_size(const ModelSpec& model, const Plan& plan, const SoftwareParts& parts);

struct FailureModel {
  Seconds work;      // time of the run without checkpoints and failures
  Seconds interval;  // work between two checkpoints; the last one may be shorter
  Seconds write;     // pause of the run for a checkpoint
  Seconds behind;    // from then until the checkpoint can be loaded (async write)
  Seconds restart;   // after a failure, before work resumes
  Seconds mtbf;      // of all nodes of the run together
};

// Returns the interval with the least expected_wall(). tau = M x where x + ln(1 - x) = -C / M, the
// zero of the derivative of (e^((tau + C) / M) - 1) / tau; C is the pause per checkpoint. Restart
// and async write times do not change the optimum.
Seconds best_interval(Seconds write, Seconds mtbf);

// Returns sqrt(2 C M) with C = write and M = mtbf: Young 1974, first order in C/M.
Seconds young_interval(Seconds write, Seconds mtbf);

// Returns sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, and M if C >= 2M: Daly 2006, eq.
// 37.
Seconds daly_interval(Seconds write, Seconds mtbf);

std::int64_t checkpoint_count(const FailureModel& model);

// Returns the expected time of the whole run. A segment is an interval with its checkpoint. A
// segment of s seconds that restarts after every failure takes M e^(R/M) (e^(s/M) - 1) (Daly 2006,
// eq. 13 without its approximations). With async writes of W seconds, the first checkpoint can be
// loaded after s + W. Each other one can be loaded s after the previous one, unless the run fails
// and needs s + W again: M e^((R + s + W)/M) (1 - e^(-s/M)). Requires interval + write >= behind.
Seconds expected_wall(const FailureModel& model);

// Limit of segment length / MTBF. Beyond it the run practically never ends.
inline constexpr double kMostFailuresPerStretch = 30;
bool can_end(const FailureModel& model);

}  // namespace tpsim
