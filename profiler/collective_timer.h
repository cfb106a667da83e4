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
  // Buffers longer than `just_computed` bytes stand for gradients and weights, which are no longer
  // in caches: their timing rotates through `rotated` bytes of buffers. Shorter buffers stand for
  // activations that were just computed.
  std::int64_t just_computed = 1 << 20;
  Bytes rotated = Bytes(64 * kMiB);
};

// Times each collective on this world. Its ranks form groups of consecutive ranks, and all groups
// run at once, as in a plan. Skips collectives with more ranks than the world. All ranks
// call this with the same needs.
//
// The time of a send is half of a round trip to a neighbor, and includes the receive.
void time_collectives(World& world, Device& device, RankBarrier& barrier,
                      const std::vector<CollectiveNeed>& needs,
                      const CollectiveTimerSettings& settings, Samples& samples);

// Returns sizes from 8 bytes up to `most`, each four times the previous one.
std::vector<std::int64_t> size_ladder(std::int64_t most);

}  // namespace tpsim
