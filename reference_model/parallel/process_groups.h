// The communicators of a rank, one for each kind of group.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "ranks/world.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

class OwnedGroups {
 public:
  // `form` makes this rank's communicator of a kind of group. It is called in one order on all
  // ranks: once for each kind that the plan has, twice for the pipeline, and for groups of data
  // that also reduce beside ops.
  using Form = std::function<std::unique_ptr<Communicator>(GroupKind)>;
  OwnedGroups(const Plan& plan, const TrainingOptions& options, const Form& form);

  ProcessGroups groups() const;

 private:
  std::array<std::unique_ptr<Communicator>, kGroupKindCount> by_kind_;
  std::unique_ptr<Communicator> pipeline_backward_, reduction_, expert_reduction_;
};

// Every rank of the plan's world calls this.
OwnedGroups form_groups(World& world, Device& device, const Plan& plan,
                        const TrainingOptions& options = {});

// Groups with others that form_groups() makes on this rank; of the pipeline, one for every way that
// messages take in it.
std::int64_t formed_groups(const Plan& plan, const TrainingOptions& options, std::int64_t rank);

}  // namespace tpsim
