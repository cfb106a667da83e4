// Monte Carlo replays of campaigns with random failures and a limited number of spare nodes. The
// replays give mean and spread of the wall time. campaigns/checkpoints.h has the closed form of the
// mean for unlimited spare nodes.
#pragma once

#include <cstdint>

#include "campaigns/checkpoints.h"
#include "core/base/units.h"

namespace tpsim {

// Every failure takes one node away for the time `repair`. The run waits while more than `count`
// nodes are in repair. No failures occur during the wait.
struct SpareNodes {
  std::int64_t count = 0;
  Seconds repair;
};

struct Replays {
  std::int64_t campaigns = 0;
  Seconds mean;            // wall time without CampaignTime::downtime
  Seconds standard_error;  // of the mean
  Seconds low;             // 5 % quantile
  Seconds median;
  Seconds high;         // 95 % quantile
  double failures = 0;  // mean number per campaign
  Seconds lost;         // lost work, mean
  Seconds waiting;      // time without enough nodes, mean
};

// Replays `campaigns` campaigns. The same seed gives the same results on every machine. Requires
// can_end(model) and campaigns >= 2.
Replays replay_campaigns(const FailureModel& model, const SpareNodes& spares,
                         std::int64_t campaigns, std::uint64_t seed);

// Returns the smallest number of spare nodes that is exceeded by the nodes in repair with
// probability at most `risk`. The number of nodes in repair is Poisson with mean repair / mtbf
// (M/G/infinity queue).
std::int64_t spare_nodes_for(Seconds repair, Seconds mtbf, double risk);

}  // namespace tpsim
