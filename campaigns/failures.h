// Campaigns played through with random failures: what the closed form (campaigns/checkpoints.h)
// says on average, with its spread, and with spare nodes that can run out.
#pragma once

#include <cstdint>

#include "campaigns/checkpoints.h"
#include "core/base/units.h"

namespace tpsim {

// Every failure takes one node away for `repair`. While more than `count` nodes are away the run
// waits; nothing fails while it waits.
struct SpareNodes {
  std::int64_t count = 0;
  Seconds repair;
};

struct Replays {
  std::int64_t campaigns = 0;
  Seconds mean;            // wall time, downtime for other reasons not included
  Seconds standard_error;  // of the mean
  Seconds low;             // 5 % of the campaigns are shorter
  Seconds median;
  Seconds high;         // 5 % are longer
  double failures = 0;  // mean number
  Seconds lost;         // mean work done in vain
  Seconds waiting;      // mean time without enough nodes
};

// The same numbers for the same seed on every machine. Needs can_end(model) and campaigns >= 2.
Replays replay_campaigns(const FailureModel& model, const SpareNodes& spares,
                         std::int64_t campaigns, std::uint64_t seed);

// Nodes away at one time are Poisson with mean repair / mtbf (M/G/infinity): the smallest number
// that they exceed with at most `risk` probability.
std::int64_t spare_nodes_for(Seconds repair, Seconds mtbf, double risk);

}  // namespace tpsim
