// A world of one rank: groups that need no messages.
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

// The communicator of a group of one, whatever the world: it records nothing and moves nothing.
std::unique_ptr<Communicator> lone_communicator(Device& device, GroupKind group);

}  // namespace tpsim
