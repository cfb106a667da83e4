#include "sim/layers/owner_share.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plan/rank_layout.h"
#include "reference_model/parallel/owners.h"
#include "sim/layers/shard_groups.h"

namespace tpsim {
namespace {

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

}  // namespace

OwnerShare owner_share(const Scenario& scenario, const Plan& plan, const StepEndTrace& trace,
                       bool of_experts) {
  const std::int64_t ranks = of_experts ? expert_data_ranks(plan) : shard_ranks(scenario, plan);
  const std::int64_t blocks = std::max<std::int64_t>(1, scenario.model.layers / plan.degrees.pp);
  const OwnedTensors owned = owned_on_stage(trace, blocks, of_experts);
  if (owned.costs.empty()) return {};
  const std::vector<int> owners = balanced_owners(owned.costs, static_cast<int>(ranks));
  return {largest_share(owned.costs, owners, ranks), largest_share(owned.elements, owners, ranks)};
}

void share_among_owners(const Scenario& scenario, const Plan& plan, StepEndTrace& trace) {
  for (const bool of_experts : {false, true}) {
    const OwnerShare share = owner_share(scenario, plan, trace, of_experts);
    for (OwnedEvents& owned : trace.owned) {
      if (owned.of_experts != of_experts) continue;
      owned.time = share.time;
      for (std::size_t i = owned.begin; i < owned.end; ++i) {
        const ProgramEvent& event = trace.program.events[i];
        if (event.kind != ProgramEvent::Kind::kAllocate) continue;
        AllocationRecord& state = trace.program.allocations[event.index];
        if (state.category != MemoryCategory::kOptimizer) continue;
        state.bytes = std::llround(share.bytes * static_cast<double>(state.bytes));
      }
    }
  }
}

std::vector<double> owner_times(const StepEndTrace& trace) {
  std::vector<double> times(trace.program.events.size(), 1.0);
  for (const OwnedEvents& owned : trace.owned) {
    for (std::size_t i = owned.begin; i < owned.end; ++i) times[i] = owned.time;
  }
  return times;
}

}  // namespace tpsim
