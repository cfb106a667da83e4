#include "core/scenario/node_map.h"

namespace tpsim {

NodeMap node_map(const Scenario& scenario, const Plan& plan) {
  const std::vector<NodeShape>& nodes = scenario.cluster.unequal_nodes;
  if (nodes.empty()) return node_size(scenario.cluster, gpu_count(plan));
  for (const RankNodes& one : scenario.rank_nodes) {
    if (one.suits(plan)) return {nodes, one.node_of};
  }
  return {nodes, packed(plan, nodes, block_sizes(plan), by_size(nodes, true))};
}

}  // namespace tpsim
