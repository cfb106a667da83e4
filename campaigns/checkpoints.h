// Checkpoints of a long run: how large, how often, and what failures make of the run's time.
//
// Failures are a Poisson process over the whole run (also while it restarts). Training stands still
// for a checkpoint: while it is written, or while it is copied to the hosts, which then write it
// beside the training. Not modelled: what that writing takes from the steps, and failures of
// storage.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"

namespace tpsim {

// Weights in the plan's dtype once, and per stage the optimizer's state: both moments of Adam in
// `moments` and, unless the weights are fp32 themselves, their fp32 master copy. Both end stages of
// a pipeline hold tied word embeddings, so their optimizer state is written twice.
Bytes checkpoint_size(const ModelSpec& model, const Plan& plan, DType moments);

struct FailureModel {
  Seconds work;      // what the run would take with neither checkpoints nor failures
  Seconds interval;  // work between two checkpoints; the last stretch may be shorter
  Seconds write;     // for which a checkpoint stops the run
  Seconds behind;    // from then until it can be loaded: what is written beside the training
  Seconds restart;   // after a failure, before work goes on
  Seconds mtbf;      // of all nodes of the run together
};

// The interval that makes expected_wall least, to rounding: tau = M x where x + ln(1 - x) = -C / M,
// the zero of the derivative of (e^((tau + C) / M) - 1) / tau, C being what stops the run. Neither
// restarts nor what is written behind move it.
Seconds best_interval(Seconds write, Seconds mtbf);

// sqrt(2 C M): Young 1974, first order in C/M.
Seconds young_interval(Seconds write, Seconds mtbf);

// sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, and M from C = 2M on: Daly 2006, eq. 37.
Seconds daly_interval(Seconds write, Seconds mtbf);

std::int64_t checkpoint_count(const FailureModel& model);

// Expected time of the whole run. A stretch of s seconds that starts anew after every failure takes
// M e^(R/M) (e^(s/M) - 1) (Daly 2006, eq. 13 without its approximations); a stretch is the interval
// and its checkpoint. With W written behind, the first checkpoint can be loaded after s + W, each
// other one s after the one before, unless the run fails and needs s + W again:
// M e^((R + s + W)/M) (1 - e^(-s/M)). Needs interval + write >= behind.
Seconds expected_wall(const FailureModel& model);

// How often a stretch of this model can fail before numbers lose their meaning: a run whose
// stretch is more than this many mean times between failures never ends.
inline constexpr double kMostFailuresPerStretch = 30;
bool can_end(const FailureModel& model);

}  // namespace tpsim
