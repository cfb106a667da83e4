#include "reference_model/parallel/process_groups.h"

#include <utility>

#include "core/plan/rank_layout.h"
#include "ranks/meta/lone_world.h"

namespace tpsim {

namespace {

// Whether experts need their own communicator, because their group has other ranks than the group
// of the dense layers.
bool is_own_group(const Plan& plan, GroupKind kind) {
  return kind == GroupKind::kExpertData ? folds_experts(plan)
                                        : expert_tensor_ranks(plan) != plan.degrees.tp;
}

// Whether reductions need their own communicators. With overlap, ZeRO-3 gathers the weights of one
// layer while it reduces the gradients of another.
bool reduces_beside_gathers(const Plan& plan, const TrainingOptions& options) {
  return options.overlap_gradient_reduction && plan.zero == 3;
}

}  // namespace

OwnedGroups::OwnedGroups(const Plan& plan, const TrainingOptions& options, const Form& form) {
  for (std::size_t i = 0; i < kGroupKindCount; ++i) {
    const auto kind = static_cast<GroupKind>(i);
    const bool is_of_experts = kind == GroupKind::kExpertData || kind == GroupKind::kExpertTensor;
    if (!is_of_experts || is_own_group(plan, kind)) by_kind_[i] = form(kind);
    if (kind == GroupKind::kPipeline) pipeline_backward_ = form(kind);
  }
  if (!reduces_beside_gathers(plan, options)) return;
  reduction_ = form(GroupKind::kData);
  if (is_own_group(plan, GroupKind::kExpertData)) expert_reduction_ = form(GroupKind::kExpertData);
}

ProcessGroups OwnedGroups::groups() const {
  const auto of = [&](GroupKind kind) { return by_kind_[static_cast<std::size_t>(kind)].get(); };
  Communicator* expert_data = of(GroupKind::kExpertData);
  Communicator* expert_tensor = of(GroupKind::kExpertTensor);
  Communicator* data = of(GroupKind::kData);
  Communicator* reduction = reduction_ ? reduction_.get() : data;
  if (expert_data == nullptr) expert_data = data;
  const auto expert_reduction = [&] {
    if (expert_reduction_) return expert_reduction_.get();
    return expert_data == data ? reduction : expert_data;
  };
  return {.tensor = *of(GroupKind::kTensor),
          .data = *data,
          .reduction = *reduction,
          .expert_reduction = *expert_reduction(),
          .pipeline_forward = *of(GroupKind::kPipeline),
          .pipeline_backward = *pipeline_backward_,
          .embedding = *of(GroupKind::kEmbedding),
          .model = *of(GroupKind::kModel),
          .world = *of(GroupKind::kWorld),
          .context = *of(GroupKind::kContext),
          .expert = *of(GroupKind::kExpert),
          .expert_data = *expert_data,
          .expert_tensor = expert_tensor != nullptr ? *expert_tensor : *of(GroupKind::kTensor)};
}

namespace {

// Directions of the messages in one pipeline communicator. Activations go to the next stage,
// gradients to the previous one. With virtual stages messages also wrap around between the last and
// the first stage, so that both directions occur.
MessageWays pipeline_ways(const Plan& plan, bool backward) {
  const bool goes_round = plan.virtual_stages > 1;
  return {.up = goes_round || !backward, .down = goes_round || backward};
}

}  // namespace

OwnedGroups form_groups(World& world, Device& device, const Plan& plan,
                        const TrainingOptions& options) {
  bool backward = false;
  return {plan, options, [&](GroupKind kind) -> std::unique_ptr<Communicator> {
            const std::vector<std::int64_t> members = group_members(plan, kind, world.rank());
            if (members.size() == 1) return lone_communicator(device, kind);
            if (kind != GroupKind::kPipeline) return world.communicator(device, kind, members);
            const MessageWays ways = pipeline_ways(plan, std::exchange(backward, true));
            return world.message_group(device, members, ways);
          }};
}

std::int64_t formed_groups(const Plan& plan, const TrainingOptions& options, std::int64_t rank) {
  std::int64_t count = 0;
  bool backward = false;
  const OwnedGroups none(plan, options, [&](GroupKind kind) -> std::unique_ptr<Communicator> {
    if (group_position(plan, kind, rank).size == 1) return nullptr;
    if (kind == GroupKind::kPipeline) {
      const MessageWays ways = pipeline_ways(plan, std::exchange(backward, true));
      count += (ways.up ? 1 : 0) + (ways.down ? 1 : 0);
    } else {
      ++count;
    }
    return nullptr;
  });
  return count;
}

}  // namespace tpsim
