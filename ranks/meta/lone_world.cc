#include "ranks/meta/lone_world.h"

#include "ranks/meta/meta_communicator.h"

namespace tpsim {

std::unique_ptr<Communicator> lone_communicator(Device& device, GroupKind group) {
  // Communicator calls no virtual function for a group of one.
  return std::make_unique<MetaCommunicator>(device, group, 0, 1);
}

std::unique_ptr<Communicator> LoneWorld::communicator(Device& device, GroupKind group,
                                                      const std::vector<std::int64_t>& members) {
  TPSIM_CHECK(members.size() == 1 && members[0] == 0, "a lone rank's groups hold it alone");
  return lone_communicator(device, group);
}

Status run_alone(const RankBody& body) {
  LoneWorld world;
  return outcome_of(world, body);
}

}  // namespace tpsim
