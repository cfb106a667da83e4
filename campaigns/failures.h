// Monte Carlo replays of campaigns with random failures: mean and spread, and spare nodes that can
// run out. campaigns/checkpoints.h has the closed form of the mean.
#pragma once

#include <cstdint>

#include "campaigns/checkpoints.h"
#include "core/base/units.h"

namespace tpsim {

// Every failure removes one node for `repair`. The run waits while more than `count` nodes are
// missing. No failures occur while it waits.
struct SpareNodes {
  std::int64_t count = 0;
  Seconds repair;
};

struct Replays {
  std::int64_t campaigns = 0;
  Seconds mean;            // wall time without downtime for other reasons
  Seconds standard_error;  // of the mean
  Seconds low;             // 5 % quantile
  Seconds median;
  Seconds high;         // 95 % quantile
  double failures = 0;  // mean number
  Seconds lost;         // mean of lost work
  Seconds waiting;      // mean time without enough nodes
};

// Equal results for equal seeds on every machine. Requires can_end(model) and campaigns >= 2.
Replays replay_campaigns(const FailureModel& model, const SpareNodes& spares,
                         std::int64_t campaigns, std::uint64_t seed);

// Returns the smallest number of nodes that the missing nodes exceed with probability at most
// `risk`. The number of missing nodes is Poisson with mean repair / mtbf (M/G/infinity queue).
std::int64_t spare_nodes_for(Seconds repair, Seconds mtbf, double risk);

}  // namespace tpsim
