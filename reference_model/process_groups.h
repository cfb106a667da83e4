// The communicators of a rank, one for each kind of group.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "ranks/world.h"
#include "reference_model/rank_context.h"

namespace tpsim {

class OwnedGroups {
 public:
  // `form` makes this rank's communicator of a kind of group. It is called in one order on all
  // ranks: once for each kind that the plan has, and twice for the pipeline.
  using Form = std::function<std::unique_ptr<Communicator>(GroupKind)>;
  OwnedGroups(const Plan& plan, const Form& form);

  ProcessGroups groups() const;

 private:
  std::array<std::unique_ptr<Communicator>, kGroupKindCount> by_kind_;
  std::unique_ptr<Communicator> pipeline_backward_;
};

// Every rank of the plan's world calls this.
OwnedGroups form_groups(World& world, Device& device, const Plan& plan);

// Groups with others that form_groups() makes on this rank; of the pipeline, one for every way that
// messages take in it.
std::int64_t formed_groups(const Plan& plan, std::int64_t rank);

}  // namespace tpsim
