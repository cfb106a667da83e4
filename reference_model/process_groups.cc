#include "reference_model/process_groups.h"

#include "core/rank_layout.h"
#include "ranks/lone_world.h"

namespace tpsim {

namespace {

// Whether the experts' ranks are others than those of the rest of a block.
bool is_own_group(const Plan& plan, GroupKind kind) {
  return kind == GroupKind::kExpertData ? folds_experts(plan)
                                        : expert_tensor_ranks(plan) != plan.degrees.tp;
}

}  // namespace

OwnedGroups::OwnedGroups(const Plan& plan, const Form& form) {
  for (std::size_t i = 0; i < kGroupKindCount; ++i) {
    const auto kind = static_cast<GroupKind>(i);
    const bool is_of_experts = kind == GroupKind::kExpertData || kind == GroupKind::kExpertTensor;
    if (!is_of_experts || is_own_group(plan, kind)) by_kind_[i] = form(kind);
    if (kind == GroupKind::kPipeline) pipeline_backward_ = form(kind);
  }
}

ProcessGroups OwnedGroups::groups() const {
  const auto of = [&](GroupKind kind) { return by_kind_[static_cast<std::size_t>(kind)].get(); };
  Communicator* expert_data = of(GroupKind::kExpertData);
  Communicator* expert_tensor = of(GroupKind::kExpertTensor);
  return {.tensor = *of(GroupKind::kTensor),
          .data = *of(GroupKind::kData),
          .pipeline_forward = *of(GroupKind::kPipeline),
          .pipeline_backward = *pipeline_backward_,
          .embedding = *of(GroupKind::kEmbedding),
          .model = *of(GroupKind::kModel),
          .world = *of(GroupKind::kWorld),
          .context = *of(GroupKind::kContext),
          .expert = *of(GroupKind::kExpert),
          .expert_data = expert_data != nullptr ? *expert_data : *of(GroupKind::kData),
          .expert_tensor = expert_tensor != nullptr ? *expert_tensor : *of(GroupKind::kTensor)};
}

OwnedGroups form_groups(World& world, Device& device, const Plan& plan) {
  return {plan, [&](GroupKind kind) {
            const std::vector<std::int64_t> members = group_members(plan, kind, world.rank());
            return members.size() > 1 ? world.communicator(device, kind, members)
                                      : lone_communicator(device, kind);
          }};
}

}  // namespace tpsim
