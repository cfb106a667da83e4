// Best plans after nodes are lost for good.
#include <fmt/format.h>

#include <algorithm>

#include "campaigns/campaign.h"
#include "plans/search/search.h"
#include "plans/search/staged_search.h"

namespace tpsim {
namespace {

SearchSpace space_of(const Plan& plan, std::int64_t gpus) {
  SearchSpace space = space_around(plan);
  space.gpus = gpus;
  return space;
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
    Replanned row{lost, {}, {}};
    for (std::int64_t used = nodes - lost; used >= least_for(lost); --used) {
      const std::vector<PlannedRun>& plans = found[static_cast<std::size_t>(used)];
      if (plans.empty()) continue;
      const bool better =
          row.best.empty() || plans.front().predicted.step < row.best.front().predicted.step;
      if (better) row.best = {plans.front()};
    }
    TPSIM_TRY(row.other_batch,
              StagedSearch(scenario, space_of(plan, (nodes - lost) * node), 1)
                  .faster_batch(row.best.empty() ? 0 : row.best.front().predicted.tokens_per_s));
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace tpsim
