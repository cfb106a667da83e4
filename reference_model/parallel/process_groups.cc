#include "reference_model/parallel/process_groups.h"

#include "core/plan/rank_layout.h"
#include "ranks/meta/lone_world.h"

namespace tpsim {
namespace {

// Whether the group of experts has other ranks than the group of the dense layers.
bool is_own_group(const Plan& plan, GroupKind kind) {
  if (kind == GroupKind::kExpertData) return folds_experts(plan);
  return kind != GroupKind::kExpertTensor || expert_tensor_ranks(plan) != plan.degrees.tp;
}

// Calls visit(kind, is_second, ways) for each group of formed_groups().
template <class Visit>
void visit_groups(const Plan& plan, const TrainingOptions& options, Visit visit) {
  const bool goes_round = plan.virtual_stages > 1;
  // With overlap, ZeRO-3 gathers the weights of one layer while it reduces the gradients of
  // another.
  const bool reduces_beside_gathers = options.overlap_gradient_reduction && plan.zero == 3;
  const auto add = [&](GroupKind kind, bool is_second, MessageWays ways = {}) {
    if (is_own_group(plan, kind)) visit(kind, is_second, ways);
  };
  for (const GroupKind kind : all_of<GroupKind>()) {
    if (kind != GroupKind::kPipeline) {
      add(kind, false);
      continue;
    }
    add(kind, false, {.up = true, .down = goes_round});
    add(kind, true, {.up = goes_round, .down = true});
  }
  if (reduces_beside_gathers) {
    add(GroupKind::kData, true);
    add(GroupKind::kExpertData, true);
  }
}

}  // namespace

std::vector<FormedGroup> formed_groups(const Plan& plan, const TrainingOptions& options,
                                       std::int64_t rank) {
  std::vector<FormedGroup> formed;
  formed.reserve(kGroupKindCount + 3);
  visit_groups(plan, options, [&](GroupKind kind, bool is_second, MessageWays ways) {
    const bool is_some = kind == GroupKind::kEmbedding;  // only the outer stages are members
    const std::int64_t ranks =
        is_some ? group_position(plan, kind, rank).size : group_size(plan, kind);
    formed.push_back({kind, is_second, ranks, ways});
  });
  return formed;
}

std::int64_t busy_groups(const Plan& plan, const TrainingOptions& options) {
  std::int64_t count = 0;
  visit_groups(plan, options, [&](GroupKind kind, bool, MessageWays) {
    const bool is_rare = kind == GroupKind::kEmbedding || kind == GroupKind::kModel;
    count += !is_rare && group_size(plan, kind) > 1 ? 1 : 0;
  });
  return count;
}

OwnedGroups::OwnedGroups(const std::vector<FormedGroup>& formed, const Form& form) {
  for (const FormedGroup& group : formed) {
    (group.is_second ? second_ : first_)[static_cast<std::size_t>(group.kind)] = form(group);
  }
}

ProcessGroups OwnedGroups::groups() const {
  // Returns the communicator of a group, or `other` if the group was not formed.
  const auto among = [](const ByKind& by_kind, GroupKind kind, Communicator* other) {
    Communicator* const own = by_kind[static_cast<std::size_t>(kind)].get();
    return own != nullptr ? own : other;
  };
  const auto of = [&](GroupKind kind, Communicator* other = nullptr) {
    return among(first_, kind, other);
  };
  Communicator* const data = of(GroupKind::kData);
  Communicator* const reduction = among(second_, GroupKind::kData, data);
  Communicator* const own_expert_data = of(GroupKind::kExpertData);
  Communicator* const expert_reduction =
      among(second_, GroupKind::kExpertData, own_expert_data ? own_expert_data : reduction);
  return {.tensor = *of(GroupKind::kTensor),
          .data = *data,
          .reduction = *reduction,
          .expert_reduction = *expert_reduction,
          .pipeline_forward = *of(GroupKind::kPipeline),
          .pipeline_backward = *among(second_, GroupKind::kPipeline, nullptr),
          .embedding = *of(GroupKind::kEmbedding),
          .model = *of(GroupKind::kModel),
          .world = *of(GroupKind::kWorld),
          .context = *of(GroupKind::kContext),
          .expert = *of(GroupKind::kExpert),
          .expert_data = *of(GroupKind::kExpertData, data),
          .expert_tensor = *of(GroupKind::kExpertTensor, of(GroupKind::kTensor))};
}

OwnedGroups form_groups(World& world, Device& device, const Plan& plan,
                        const TrainingOptions& options) {
  return {formed_groups(plan, options, world.rank()), [&](const FormedGroup& group) {
            const std::vector<std::int64_t> members = group_members(plan, group.kind, world.rank());
            if (members.size() == 1) return lone_communicator(device, group.kind);
            return group.kind == GroupKind::kPipeline
                       ? world.message_group(device, members, group.ways)
                       : world.communicator(device, group.kind, members);
          }};
}

}  // namespace tpsim
