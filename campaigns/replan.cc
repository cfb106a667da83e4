// Best plans after nodes are lost for good.
#include <fmt/format.h>

#include <algorithm>

#include "campaigns/campaign.h"
#include "plans/search/search.h"

namespace tpsim {
namespace {

SearchSpace space_of(const Plan& plan, std::int64_t gpus) {
  SearchSpace space = space_around(plan);
  space.gpus = gpus;
  return space;
}

// Returns a global batch with which a plan uses all GPUs; 0 if no tried batch works. GPUs stay idle
// if the data-parallel degree must divide a batch that shares no factor with the GPU count. Tries
// multiples of GPUs / 2^k nearest to the plan's batch, smallest unit first, with one search each.
Result<std::int64_t> batch_for(const Scenario& scenario, const Plan& plan, std::int64_t gpus) {
  constexpr int kTries = 4;
  std::int64_t unit = gpus;
  while (unit % 2 == 0 && unit > 1) unit /= 2;
  for (int i = 0; i < kTries && unit <= gpus; ++i, unit *= 2) {
    const std::int64_t below = plan.global_batch / unit * unit;
    const bool up = below == 0 || 2 * (plan.global_batch - below) > unit;
    SearchSpace space = space_of(plan, gpus);
    space.global_batch = up ? below + unit : below;
    TPSIM_TRY(const SearchResult found, search(scenario, space, 1, {}));
    if (!found.plans.empty()) return space.global_batch;
  }
  return std::int64_t{0};
}

}  // namespace

Result<std::vector<Replanned>> replan(const Scenario& scenario, const Plan& plan,
                                      std::int64_t most_lost,
                                      const std::function<void(double)>& progress) {
  const std::int64_t nodes = nodes_of(scenario.cluster, plan);
  const std::int64_t node = node_size(scenario.cluster, gpu_count(plan));
  if (most_lost < 1 || most_lost >= nodes) {
    return bad_input(fmt::format("the plan cannot lose {} of {} nodes", most_lost, nodes),
                     "--lost-nodes",
                     nodes > 1 ? fmt::format("give 1 to {}", nodes - 1) : "the plan uses one node");
  }
  const auto least_for = [&](std::int64_t lost) {
    return std::max<std::int64_t>(1, (nodes - lost) * 3 / 4);
  };
  // All rows of the table share one search per number of nodes.
  const std::int64_t least = least_for(most_lost);
  std::vector<std::vector<PlannedRun>> found(
      static_cast<std::size_t>(nodes));  // by number of nodes used
  for (std::int64_t used = nodes - 1; used >= least; --used) {
    TPSIM_TRY(SearchResult result, search(scenario, space_of(plan, used * node), 1, {}));
    found[static_cast<std::size_t>(used)] = std::move(result.plans);
    if (progress) progress(static_cast<double>(nodes - used) / static_cast<double>(nodes - least));
  }
  std::vector<Replanned> table;
  for (std::int64_t lost = 1; lost <= most_lost; ++lost) {
    Replanned row{lost, {}, 0};
    for (std::int64_t used = nodes - lost; used >= least_for(lost); --used) {
      const std::vector<PlannedRun>& plans = found[static_cast<std::size_t>(used)];
      if (plans.empty()) continue;
      const bool better =
          row.best.empty() || plans.front().predicted.step < row.best.front().predicted.step;
      if (better) row.best = {plans.front()};
    }
    const std::int64_t left = (nodes - lost) * node;
    if (row.best.empty() || gpu_count(row.best.front().plan) < left) {
      TPSIM_TRY(row.whole_batch, batch_for(scenario, plan, left));
    }
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace tpsim
