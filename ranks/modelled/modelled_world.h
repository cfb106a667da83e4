// Runs one rank of a job without the other ranks. Its collectives move no data between ranks and
// take the time that a model predicts.
//
// Tensor values are finite and reproducible but meaningless. An all-reduce leaves its tensor
// unchanged, an all-gather repeats this rank's part, an all-to-all returns the input, and received
// tensors have pseudo-random values. The ops that follow have the shapes and the cost of the real
// rank.
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
