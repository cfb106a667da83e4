// How long collectives take when all members arrive at once.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/rank_barrier.h"
#include "profiler/samples.h"
#include "ranks/world.h"

namespace tpsim {

struct CollectiveNeed {
  CollectiveKind kind{};
  std::int64_t ranks = 2;
  std::int64_t bytes = 0;  // as in CollectiveRecord
  friend auto operator<=>(const CollectiveNeed&, const CollectiveNeed&) = default;
};

struct CollectiveTimerSettings {
  Seconds budget = Seconds(0.1);  // for one collective of one size
  std::size_t least_samples = 9;
  std::size_t most_samples = 200;
  // Longer messages are gradients and weights that the caches have lost: they come from so many
  // bytes in turn. Shorter ones are activations that have just been computed.
  std::int64_t just_computed = 1 << 20;
  Bytes rotated = Bytes(64 * kMiB);
};

// Times each need on this world: its ranks in consecutive groups, all groups at once, as the groups
// of a plan communicate. What does not fit the world is left out. Every rank calls this.
//
// A send is timed as half of its way to a neighbour and back; a receive is part of it.
void time_collectives(World& world, Device& device, RankBarrier& barrier,
                      const std::vector<CollectiveNeed>& needs,
                      const CollectiveTimerSettings& settings, Samples& samples);

// Sizes from 8 bytes up to `most`, each four times the one before.
std::vector<std::int64_t> size_ladder(std::int64_t most);

}  // namespace tpsim
