// ZeRO 1 with an optimizer that needs whole matrices: every tensor of a block has one owner
// (reference_model/parallel/owners.h). A trace contains the work of all owners of one block.
#include "reference_model/parallel/owners.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plan/rank_layout.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/shard_groups.h"

namespace tpsim {
namespace {

// Work and state of the busiest owner per block, relative to those of all owners of a block. With
// more ranks than tensors both exceed 1 / ranks, because no tensor is split.
struct OwnerShare {
  double time = 1;
  double bytes = 1;  // of the rank with the most elements
};

struct OwnedTensors {
  std::vector<double> costs, elements;
};

OwnedTensors owned_on_stage(const StepEndTrace& trace, std::int64_t blocks, bool of_experts) {
  OwnedTensors all;
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (const OwnedTensor& tensor : trace.owned_tensors) {
      if (tensor.of_experts != of_experts) continue;
      all.costs.push_back(tensor.cost);
      all.elements.push_back(tensor.elements);
    }
  }
  return all;
}

// Returns the largest sum of a rank's values per block, relative to the sum of all values of a
// block.
double largest_share(const std::vector<double>& values, const std::vector<int>& owners,
                     std::int64_t ranks) {
  std::vector<double> sums(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[static_cast<std::size_t>(owners[i])] += values[i];
  }
  return *std::max_element(sums.begin(), sums.end()) /
         std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns the share of a stage with equal blocks like the traced one. `of_experts`: tensors of
// experts, whose owners are the ranks with the same experts.
OwnerShare owner_share(const StepEndInputs& inputs, bool of_experts) {
  const Plan& plan = inputs.plan;
  const std::int64_t ranks =
      of_experts ? expert_data_ranks(plan) : shard_ranks(inputs.scenario, plan);
  const std::int64_t blocks =
      std::max<std::int64_t>(1, inputs.scenario.model.layers / plan.degrees.pp);
  const OwnedTensors owned = owned_on_stage(inputs.trace, blocks, of_experts);
  if (owned.costs.empty()) return {};
  const std::vector<int> owners = balanced_owners(owned.costs, static_cast<int>(ranks));
  return {largest_share(owned.costs, owners, ranks), largest_share(owned.elements, owners, ranks)};
}

void scale(LoweredLayer& layer, const ProgramEvent& event, const OwnerShare& share) {
  switch (event.kind) {
    case ProgramEvent::Kind::kOp: layer.ops[event.index].repeats = share.time; break;
    case ProgramEvent::Kind::kCollective: layer.collectives[event.index].calls *= share.time; break;
    case ProgramEvent::Kind::kAllocate: {
      LoweredAllocation& state = layer.allocations[event.index];
      if (state.category != MemoryCategory::kOptimizer) break;
      state.bytes = std::llround(share.bytes * static_cast<double>(state.bytes));
      break;
    }
    case ProgramEvent::Kind::kFree: break;
  }
}

}  // namespace

// Scales work and optimizer state of all owners to those of the busiest one.
void share_among_owners(LoweredLayer& layer, const StepEndInputs& inputs) {
  for (const bool of_experts : {false, true}) {
    const OwnerShare share = owner_share(inputs, of_experts);
    for (const OwnedEvents& owned : inputs.trace.owned) {
      if (owned.of_experts != of_experts) continue;
      for (std::size_t i = owned.begin; i < owned.end; ++i) {
        scale(layer, inputs.trace.program.events[i], share);
      }
    }
  }
}

}  // namespace tpsim
