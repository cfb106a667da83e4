// Process groups of a rank: one communicator for each kind of group. Corresponds to Megatron's
// initialize_model_parallel() and get_tensor_model_parallel_group().
//
// Ranks of a group: group_members() in core/plan/rank_layout.h.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "ranks/world.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

class OwnedGroups {
 public:
  // `form` creates this rank's communicator for a kind of group. All ranks call it in the same
  // order, once per kind. Expert groups with the same ranks as the dense groups are skipped. The
  // pipeline gets a second communicator, for the other direction. The data groups get a second one
  // if ZeRO-3 overlaps their reductions with gathers.
  using Form = std::function<std::unique_ptr<Communicator>(GroupKind)>;
  OwnedGroups(const Plan& plan, const TrainingOptions& options, const Form& form);

  // Returns references to the communicators; `this` must outlive them.
  ProcessGroups groups() const;

 private:
  std::array<std::unique_ptr<Communicator>, kGroupKindCount> by_kind_;
  std::unique_ptr<Communicator> pipeline_backward_, reduction_, expert_reduction_;
};

// Collective: every rank of the plan's world must call it. A group of one rank gets a communicator
// that does nothing.
OwnedGroups form_groups(World& world, Device& device, const Plan& plan,
                        const TrainingOptions& options = {});

// Returns the number of communicators with more than one rank that form_groups() creates on `rank`.
// The pipeline counts once for each direction of its messages.
std::int64_t formed_groups(const Plan& plan, const TrainingOptions& options, std::int64_t rank);

}  // namespace tpsim
