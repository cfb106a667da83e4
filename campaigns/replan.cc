// Best plans after nodes are lost for good.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "campaigns/campaign.h"
#include "plans/search/staged_search.h"
#include "plans/search/usual_batch.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

// Numbers of nodes are skipped if their GPUs would have to be more than this times as fast as the
// fastest so far.
constexpr double kMostGain = 1.02;

}  // namespace

Result<std::vector<Replanned>> replan(const Scenario& scenario, const Plan& plan,
                                      std::int64_t most_lost,
                                      const std::function<void(double)>& progress) {
  if (!scenario.cluster.unequal_nodes.empty()) {
    return bad_input("tpsim cannot plan the loss of nodes that differ yet", "--lost-nodes",
                     "remove the failed hosts from --nodes of tpsim plan");
  }
  const std::int64_t nodes = nodes_of(scenario.cluster, plan);
  const std::int64_t node = node_size(scenario.cluster, gpu_count(plan));
  if (most_lost < 1 || most_lost >= nodes) {
    return bad_input(fmt::format("the plan cannot lose {} of {} nodes", most_lost, nodes),
                     "--lost-nodes",
                     nodes > 1 ? fmt::format("give 1 to {}", nodes - 1) : "the plan uses one node");
  }
  StagedSearch search(scenario, space_around(plan), 1);
  std::optional<PlannedRun> best;  // of the node counts so far
  TPSIM_TRY(const Prediction own, simulate(scenario, plan));
  double speed = own.tokens_per_s / static_cast<double>(gpu_count(plan));  // of a GPU, the most
  const auto try_nodes = [&](std::int64_t used) -> Status {
    const std::int64_t gpus = used * node;
    const double hoped = kMostGain * speed * static_cast<double>(gpus);
    if (best && hoped < best->predicted.tokens_per_s) return Ok{};
    for (const std::int64_t batch :
         std::set{plan.global_batch, divisible_batch(plan.global_batch, gpus)}) {
      TPSIM_TRY(std::optional<PlannedRun> found,
                search.best_with(gpus, batch, best ? best->predicted.tokens_per_s : 0));
      if (!found) continue;
      best = std::move(found);
      speed = std::max(speed, best->predicted.tokens_per_s / static_cast<double>(gpus));
    }
    return Ok{};
  };
  const std::int64_t left = nodes - most_lost;
  const std::int64_t least = std::max<std::int64_t>(1, left * 3 / 4);
  const auto show = [&](std::int64_t done) {
    if (progress) progress(static_cast<double>(done) / static_cast<double>(nodes - least));
  };
  // Every loss has the node counts that remain after the largest loss. Their best plan limits the
  // searches with more nodes.
  for (std::int64_t used = left; used >= least; --used) {
    TPSIM_TRY_STATUS(try_nodes(used));
    show(left - used + 1);
  }
  std::vector<Replanned> table = {{most_lost, best}};
  for (std::int64_t lost = most_lost - 1; lost >= 1; --lost) {
    TPSIM_TRY_STATUS(try_nodes(nodes - lost));
    table.push_back({lost, best});
    show(nodes - lost - least + 1);
  }
  std::reverse(table.begin(), table.end());
  return table;
}

}  // namespace tpsim
