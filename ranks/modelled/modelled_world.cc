#include "ranks/modelled/modelled_world.h"

#include "ranks/modelled/modelled_communicator.h"

namespace tpsim {

ModelledWorld::ModelledWorld(int rank, int size, CollectiveSeconds seconds,
                             std::int64_t integers_below)
    : World(rank, size), seconds_(std::move(seconds)), integers_below_(integers_below) {
  TPSIM_CHECK(rank >= 0 && rank < size, "a rank of the world");
}

std::unique_ptr<Communicator> ModelledWorld::communicator(
    Device& device, GroupKind group, const std::vector<std::int64_t>& members) {
  return std::make_unique<ModelledCommunicator>(device, member_of(*this, group, members), seconds_,
                                                integers_below_);
}

}  // namespace tpsim
