// Synchronizes the ranks of a profile, so that each op is timed while the other ranks are as busy
// as in training.
#pragma once

#include <memory>

#include "ranks/world.h"

namespace tpsim {

class RankBarrier {
 public:
  RankBarrier(World& world, Device& device);

  // Waits until all ranks have called it.
  void wait();
  // Whether `mine` is true on all ranks.
  bool all_agree(bool mine);

 private:
  Device& device_;
  std::unique_ptr<Communicator> ranks_;
  Tensor votes_;  // [1] fp32
};

}  // namespace tpsim
