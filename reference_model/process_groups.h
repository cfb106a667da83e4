// The communicators of a rank, formed in one order by all.
#pragma once

#include <memory>

#include "ranks/world.h"
#include "reference_model/rank_context.h"

namespace tpsim {

struct OwnedGroups {
  std::unique_ptr<Communicator> tensor, data, forward, backward, embedding, model, world, context;
  std::unique_ptr<Communicator> expert;
  std::unique_ptr<Communicator> expert_data;  // none where the data group is it

  ProcessGroups groups() const {
    return {*tensor, *data,  *forward, *backward, *embedding,
            *model,  *world, *context, *expert,   expert_data ? *expert_data : *data};
  }
};

// Every rank of the plan's world calls this.
OwnedGroups form_groups(World& world, Device& device, const Plan& plan);

}  // namespace tpsim
