#include "ranks/world.h"

#include <algorithm>
#include <numeric>

#include "kernels/device.h"

namespace tpsim {

std::unique_ptr<Communicator> World::message_group(Device& device,
                                                   const std::vector<std::int64_t>& members,
                                                   MessageWays /*ways*/) {
  return communicator(device, GroupKind::kPipeline, members);
}

std::vector<std::int64_t> all_ranks(const World& world) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

GroupMember member_of(const World& world, GroupKind group,
                      const std::vector<std::int64_t>& members) {
  const auto me = std::find(members.begin(), members.end(), world.rank());
  TPSIM_CHECK(me != members.end(), "this rank is not a member of the group");
  return {group, static_cast<int>(me - members.begin()), static_cast<int>(members.size())};
}

Status outcome_of(World& world, const RankBody& body) {
  try {
    return body(world);
  } catch (const OutOfDeviceMemory& error) {
    return Error{ErrorKind::kDoesNotFit, error.what(), "", ""};
  } catch (const CommunicatorAborted& error) {  // another rank is gone or unreachable
    return Error{ErrorKind::kMissing, error.what(), "", ""};
  } catch (const std::exception& error) {
    return error_from(error);
  }
}

}  // namespace tpsim
