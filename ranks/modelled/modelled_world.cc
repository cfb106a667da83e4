#include "ranks/modelled/modelled_world.h"

#include <algorithm>

#include "ranks/modelled/modelled_communicator.h"

namespace tpsim {

ModelledWorld::ModelledWorld(int rank, int size, CollectiveSeconds seconds,
                             std::int64_t integers_below)
    : rank_(rank), size_(size), seconds_(std::move(seconds)), integers_below_(integers_below) {
  TPSIM_CHECK(rank >= 0 && rank < size, "a rank of the world");
}

std::unique_ptr<Communicator> ModelledWorld::communicator(
    Device& device, GroupKind group, const std::vector<std::int64_t>& members) {
  const auto me = std::find(members.begin(), members.end(), rank_);
  TPSIM_CHECK(me != members.end(), "a rank forms groups that it belongs to");
  const ModelledCommunicator::Member member{group, static_cast<int>(me - members.begin()),
                                            static_cast<int>(members.size())};
  return std::make_unique<ModelledCommunicator>(device, member, seconds_, integers_below_);
}

}  // namespace tpsim
