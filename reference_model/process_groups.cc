#include "reference_model/process_groups.h"

#include <algorithm>

#include "core/rank_layout.h"
#include "ranks/lone_world.h"

namespace tpsim {

OwnedGroups form_groups(World& world, Device& device, const Plan& plan) {
  const auto form = [&](GroupKind kind) {
    std::vector<std::int64_t> members = group_members(plan, kind, world.rank());
    // Stages between the first and the last are alone in their embedding group.
    const bool alone = kind == GroupKind::kEmbedding &&
                       std::find(members.begin(), members.end(), world.rank()) == members.end();
    if (alone) members = {world.rank()};
    return world.communicator(device, kind, members);
  };
  OwnedGroups owned;
  owned.tensor = form(GroupKind::kTensor);
  owned.data = form(GroupKind::kData);
  owned.forward = form(GroupKind::kPipeline);
  owned.backward = form(GroupKind::kPipeline);
  owned.embedding = form(GroupKind::kEmbedding);
  owned.model = form(GroupKind::kModel);
  owned.world = form(GroupKind::kWorld);
  owned.context = form(GroupKind::kContext);
  if (plan.degrees.ep == 1) {
    owned.expert = lone_communicator(device, GroupKind::kExpert);
  } else {
    owned.expert = form(GroupKind::kExpert);
    owned.expert_data = form(GroupKind::kExpertData);
  }
  return owned;
}

}  // namespace tpsim
