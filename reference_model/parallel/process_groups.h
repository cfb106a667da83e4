// Process groups of a rank: one communicator for each kind of group. Corresponds to Megatron's
// initialize_model_parallel() and get_tensor_model_parallel_group().
//
// Ranks of a group: group_members() in core/plan/rank_layout.h.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "ranks/world.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// A process group of a rank.
struct FormedGroup {
  GroupKind kind{};
  // The same ranks as an earlier group: for gradients in the pipeline, for reductions that overlap
  // with ZeRO-3's gathers.
  bool is_second = false;
  std::int64_t ranks = 1;
  // Directions of the messages of a pipeline group. Activations go to the next stage, gradients to
  // the previous one. With virtual stages messages also wrap around between the last and the first
  // stage, so that both directions occur.
  MessageWays ways = {};

  // Number of communicators with buffers: one per direction of messages, none for a rank alone.
  std::int64_t communicators() const {
    if (ranks == 1) return 0;
    return kind == GroupKind::kPipeline ? (ways.up ? 1 : 0) + (ways.down ? 1 : 0) : 1;
  }
};

// Returns the process groups of a rank in the order in which all ranks form them. Expert groups
// with the same ranks as the dense groups are left out.
std::vector<FormedGroup> formed_groups(const Plan& plan, const TrainingOptions& options,
                                       std::int64_t rank);

// Returns the number of formed_groups() of more than one rank, without the groups of one all-reduce
// a step (embedding and model).
std::int64_t busy_groups(const Plan& plan, const TrainingOptions& options);

class OwnedGroups {
 public:
  // `form` creates the communicator of each of formed_groups().
  using Form = std::function<std::unique_ptr<Communicator>(const FormedGroup&)>;
  OwnedGroups(const std::vector<FormedGroup>& formed, const Form& form);

  // Returns references to the communicators; `this` must outlive them.
  ProcessGroups groups() const;

 private:
  using ByKind = std::array<std::unique_ptr<Communicator>, kGroupKindCount>;
  ByKind first_, second_;  // second_: FormedGroup::is_second
};

// Collective: every rank of the plan's world must call it. A group of one rank gets a communicator
// that does nothing.
OwnedGroups form_groups(World& world, Device& device, const Plan& plan,
                        const TrainingOptions& options = {});

}  // namespace tpsim
