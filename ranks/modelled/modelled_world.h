// One rank of a run without other ranks. Its collectives move no data and take the time that a
// model predicts.
//
// Contents are finite and reproducible but meaningless. An all-reduce leaves its tensor unchanged,
// a gather repeats this rank's part, an all-to-all returns the input, and received tensors are
// drawn by position. The ops that follow have the shapes and the cost of the real rank.
#pragma once

#include <functional>

#include "ranks/world.h"

namespace tpsim {

// Returns the predicted time of a collective in seconds.
using CollectiveSeconds = std::function<double(const CollectiveRecord&)>;

class ModelledWorld final : public World {
 public:
  // Received integers (tokens) are drawn from [0, integers_below).
  ModelledWorld(int rank, int size, CollectiveSeconds seconds, std::int64_t integers_below);

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override;

 private:
  CollectiveSeconds seconds_;
  std::int64_t integers_below_;
};

}  // namespace tpsim
