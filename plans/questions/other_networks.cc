#include "plans/questions/other_networks.h"

#include <set>
#include <utility>

namespace tpsim {

bool is_open(const LinkSpec& link) { return link.kind.starts_with("PCIe"); }

Result<std::vector<Scenario>> other_networks(const Catalogue& catalogue, const Scenario& scenario,
                                             const std::string& own) {
  std::vector<Scenario> found;
  const ClusterSpec& taken = scenario.cluster;
  for (const std::string& name : catalogue.list(CatalogueKind::kClusters)) {
    TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(name));
    if (name == own || cluster.profile != taken.profile) continue;
    if (cluster.nodes == 1 || cluster.gpus_per_node != taken.gpus_per_node) continue;
    Scenario other = scenario;
    other.cluster = with_network_of(cluster, std::move(other.cluster));
    found.push_back(std::move(other));
  }
  return found;
}

Result<std::vector<Scenario>> other_links(const Catalogue& catalogue, const Scenario& scenario) {
  std::vector<Scenario> found;
  std::set<std::pair<double, double>> seen;
  const auto is_new = [&](const LinkSpec& link) {
    return is_open(link) && seen.emplace(link.efficiency, link.latency.value()).second;
  };
  is_new(scenario.cluster.intra_node);
  for (const std::string& name : catalogue.list(CatalogueKind::kClusters)) {
    TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(name));
    if (!is_new(cluster.intra_node)) continue;
    Scenario other = scenario;
    other.cluster.intra_node.efficiency = cluster.intra_node.efficiency;
    other.cluster.intra_node.latency = cluster.intra_node.latency;
    found.push_back(std::move(other));
  }
  return found;
}

}  // namespace tpsim
