#include "app/scenario/allocated.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/scenario/field.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/scenario/node_map.h"
#include "plans/questions/arrange.h"

namespace tpsim::app {
namespace {

constexpr std::size_t kMostBytes = 64 << 20;

}  // namespace

Result<std::vector<std::string>> read_nodes(const std::string& file_or_list) {
  std::error_code ignored;
  const bool is_list = file_or_list.find_first_of("[,;\n") != std::string::npos &&
                       !std::filesystem::exists(file_or_list, ignored);
  std::string text = file_or_list;
  if (is_list) std::replace(text.begin(), text.end(), ';', '\n');
  if (!is_list) {
    Result<std::string> read = read_file(file_or_list, kMostBytes);
    if (!read.ok()) {
      return field_error(Field::kNodes, fmt::format("{}: {}", file_or_list, read.error().message),
                         "give a file or hosts such as node[001-004,7]; for their number, write "
                         "--gpus with the number of nodes times the GPUs per node");
    }
    text = std::move(read).value();
  }
  TPSIM_TRY(const Allocation allocation,
            parse_allocation(text, is_list ? option_of(Field::kNodes) : file_or_list));
  return lines_of(allocation);
}

Status add_allocation(const ScenarioRequest& request, const PlanFile& file, NamedScenario& named) {
  if (file.nodes.empty()) return Ok{};
  const std::string text =
      joined_text(file.nodes, "\n", [](const std::string& line) { return line; });
  TPSIM_TRY(named.allocation, parse_allocation(text, request.origin));
  ClusterSpec& cluster = named.scenario.cluster;
  const std::vector<AllocatedHost>& hosts = named.allocation.hosts;
  const bool states_nics = std::any_of(hosts.begin(), hosts.end(),
                                       [](const AllocatedHost& host) { return host.nics >= 0; });
  if (named.node_gbps > 0 && states_nics) {
    return field_error(Field::kNodeGbps, "contradicts the NICs that --nodes states",
                       "remove nics= of the hosts, or the option");
  }
  TPSIM_TRY(named.nodes, nodes_of(named.allocation, cluster));
  cluster = with_nodes(std::move(cluster), named.allocation, named.nodes);
  if (!named.allocation.states_ranks()) return Ok{};
  RankNodes stated{.node_of = stated_nodes(named.allocation, named.nodes)};
  if (request.nodes.empty() && request.file) {
    stated.degrees = request.file->plan.degrees;
    stated.rank_order = request.file->plan.rank_order;
  }
  named.scenario.rank_nodes = {std::move(stated)};
  return Ok{};
}

std::int64_t allocated_gpus(const NamedScenario& named) {
  if (named.allocation.empty()) return 0;
  const std::size_t stated = stated_nodes(named.allocation, named.nodes).size();
  return stated > 0 ? static_cast<std::int64_t>(stated) : gpus_of(named.scenario.cluster);
}

Status arrange_ranks(NamedScenario& named, const Plan& plan) {
  Scenario& scenario = named.scenario;
  if (scenario.cluster.unequal_nodes.empty()) return Ok{};
  for (const RankNodes& one : scenario.rank_nodes) {
    if (one.suits(plan)) return Ok{};
    if (one.degrees.tp > 0) continue;
    return field_error(
        Field::kNodes,
        fmt::format("states {} ranks, but the plan has {}", one.node_of.size(), gpu_count(plan)),
        "remove ranks= of all hosts: tpsim then chooses the order");
  }
  TPSIM_TRY(RankNodes found, arranged(scenario, plan));
  scenario.rank_nodes.push_back(std::move(found));
  return Ok{};
}

Allocation allocated_ranks(const NamedScenario& named, const Plan& plan) {
  const NodeMap map = node_map(named.scenario, plan);
  std::vector<std::int32_t> node_of;
  for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
    node_of.push_back(static_cast<std::int32_t>(map.node_of(rank)));
  }
  const bool are_stated =
      named.allocation.states_ranks() && node_of == stated_nodes(named.allocation, named.nodes);
  if (are_stated) return named.allocation;
  return with_ranks(named.allocation, named.nodes, node_of);
}

Result<std::string> rank_file(const NamedScenario& named, const Plan& plan) {
  if (named.allocation.empty()) {
    return bad_input("needs the hosts of the ranks", "--rank-file", "add --nodes FILE");
  }
  std::vector<std::string> host_of(static_cast<std::size_t>(gpu_count(plan)));
  for (const AllocatedHost& host : allocated_ranks(named, plan).hosts) {
    for (const std::int64_t rank : host.ranks) host_of[static_cast<std::size_t>(rank)] = host.name;
  }
  return joined_text(host_of, "", [](const std::string& name) { return name + "\n"; });
}

std::vector<UsedNode> used_nodes(const NamedScenario& named, const Plan& plan) {
  std::vector<UsedNode> used;
  for (std::size_t i = 0; i < named.nodes.shapes.size(); ++i) {
    used.push_back({named.nodes.names[i], 0, named.nodes.shapes[i]});
  }
  for (const std::int32_t node : named.nodes.of_host) ++used[static_cast<std::size_t>(node)].hosts;
  if (used.empty()) return used;
  const NodeMap map = node_map(named.scenario, plan);
  for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
    used[map.node_of(rank)].ranks.push_back(rank);
  }
  return used;
}

}  // namespace tpsim::app
