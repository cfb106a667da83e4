// Keeps the ranks of a profile at the same work, so that each is timed with its neighbours loaded
// as they are in training.
#pragma once

#include <memory>

#include "ranks/world.h"

namespace tpsim {

class RankBarrier {
 public:
  RankBarrier(World& world, Device& device);

  // All ranks arrive, then all go on.
  void wait();
  // Whether all ranks say so.
  bool all_agree(bool mine);

 private:
  Device& device_;
  std::unique_ptr<Communicator> ranks_;
  Tensor votes_;  // [1] fp32
};

}  // namespace tpsim
