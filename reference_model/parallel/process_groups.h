// The communicators of a rank, one for each kind of group: Megatron's initialize_model_parallel and
// its get_tensor_model_parallel_group() and the like.
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
  // `form` creates this rank's communicator of a kind of group. All ranks call `form` in the same
  // order: once for each kind, once more for the pipeline (one communicator for each direction),
  // and once more for the data groups if ZeRO-3 overlaps their reductions with gathers.
  using Form = std::function<std::unique_ptr<Communicator>(GroupKind)>;
  OwnedGroups(const Plan& plan, const TrainingOptions& options, const Form& form);

  // References to the communicators; `this` must outlive them.
  ProcessGroups groups() const;

 private:
  std::array<std::unique_ptr<Communicator>, kGroupKindCount> by_kind_;
  std::unique_ptr<Communicator> pipeline_backward_, reduction_, expert_reduction_;
};

// Collective: every rank of the plan's world must call it. A group of one rank gets a communicator
// that does nothing.
OwnedGroups form_groups(World& world, Device& device, const Plan& plan,
                        const TrainingOptions& options = {});

// Number of communicators with more than one rank that form_groups() creates on `rank`. The
// pipeline counts once for each direction in which messages travel.
std::int64_t formed_groups(const Plan& plan, const TrainingOptions& options, std::int64_t rank);

}  // namespace tpsim
