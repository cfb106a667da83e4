// A world with a single rank, whose groups need no communication.
#pragma once

#include "ranks/world.h"

namespace tpsim {

class LoneWorld final : public World {
 public:
  LoneWorld() : World(0, 1) {}
  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override;
};

// Runs `body` as the only rank.
Status run_alone(const RankBody& body);

// Returns the communicator of a group of one, in any world. It records nothing and moves no data.
std::unique_ptr<Communicator> lone_communicator(Device& device, GroupKind group);

}  // namespace tpsim
