// One rank of a run that has no other ranks: its collectives move no data and take as long as a
// model says.
//
// Contents stay finite and the same on every run, but mean nothing: an all-reduce leaves its tensor
// as it is, a gather repeats this rank's part, an all-to-all returns what was sent, what is
// received is drawn by position. So the ops that follow work on the shapes, and cost the time, of
// the real rank.
#pragma once

#include <functional>

#include "ranks/world.h"

namespace tpsim {

// Seconds that a group takes for a collective.
using CollectiveSeconds = std::function<double(const CollectiveRecord&)>;

class ModelledWorld final : public World {
 public:
  // Integers that arrive (tokens) are drawn from [0, integers_below).
  ModelledWorld(int rank, int size, CollectiveSeconds seconds, std::int64_t integers_below);

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override;

 private:
  CollectiveSeconds seconds_;
  std::int64_t integers_below_;
};

}  // namespace tpsim
