// Times of collectives when all members arrive at once.
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
  // Messages longer than `just_computed` are gradients and weights that caches no longer hold:
  // their buffers rotate through `rotated` bytes. Shorter messages are activations that were just
  // computed.
  std::int64_t just_computed = 1 << 20;
  Bytes rotated = Bytes(64 * kMiB);
};

// Times each collective on this world: its ranks form consecutive groups, all groups at once, as in
// a plan. Collectives with more ranks than the world are skipped. Collective.
//
// A send is timed as half of a round trip to a neighbour, which includes the receive.
void time_collectives(World& world, Device& device, RankBarrier& barrier,
                      const std::vector<CollectiveNeed>& needs,
                      const CollectiveTimerSettings& settings, Samples& samples);

// Sizes from 8 bytes up to `most`, each four times the previous one.
std::vector<std::int64_t> size_ladder(std::int64_t most);

}  // namespace tpsim
