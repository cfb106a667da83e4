// The hosts that a scheduler gave to a job.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/machine/cluster_spec.h"

namespace tpsim {

struct AllocatedHost {
  std::string name;
  std::string rack = {};                 // rack or block of Slurm's topology; empty: not stated
  std::int64_t gpus = 0;                 // 0: as the cluster's hosts
  std::int64_t nics = -1;                // -1: as the cluster's hosts
  std::vector<std::int64_t> ranks = {};  // global ranks on the host; empty: tpsim chooses
};

struct Allocation {
  std::vector<AllocatedHost> hosts;  // those of a switch or rack follow each other

  bool empty() const { return hosts.empty(); }
  bool states_ranks() const;
};

// Reads what a scheduler printed; the lines may be mixed:
//   node[001-004,7],login-1      hosts, as SLURM_JOB_NODELIST. A line may go on with rack=R gpus=N
//                                nics=N, and of one host ranks=0-3,8.
//   BlockName=b1 Nodes=r1n[01-18]          Slurm's topology/block: NVLink domains
//   SwitchName=s0 Level=0 Nodes=n[1-8]     Slurm's topology/tree, of which leaf switches are read
//   - block: b1 / - switch: s0 / nodes: n[1-8]    the same in topology.yaml
// The blocks and switches may be those of a whole cluster if the file also lists the hosts of the
// job. Errors name file, line and value.
Result<Allocation> parse_allocation(std::string_view text, const std::string& file);

// Returns "0-3,8".
std::string ranges_text(const std::vector<std::int64_t>& ranks);
// Returns a line for each host, which parse_allocation() reads.
std::vector<std::string> lines_of(const Allocation& allocation);

// The NVLink domains of the allocation on the cluster: racks if a node of the cluster has several
// hosts, else the hosts.
struct AllocatedNodes {
  std::vector<NodeShape> shapes;
  std::vector<std::string> names;
  std::vector<std::int32_t> of_host;
  std::vector<std::int64_t> gpus_of_host;
};
Result<AllocatedNodes> nodes_of(const Allocation& allocation, const ClusterSpec& cluster);

// Returns the cluster with the nodes of the allocation. If the nodes are equal, they replace the
// cluster's; else, or if ranks are stated, they are ClusterSpec::unequal_nodes.
ClusterSpec with_nodes(ClusterSpec cluster, const Allocation& allocation,
                       const AllocatedNodes& nodes);

// Places ranks on hosts: `node_of` has the node of each rank. Ranks of a node fill its hosts in
// order.
Allocation with_ranks(Allocation allocation, const AllocatedNodes& nodes,
                      const std::vector<std::int32_t>& node_of);
// Returns the node of each stated rank.
std::vector<std::int32_t> stated_nodes(const Allocation& allocation, const AllocatedNodes& nodes);

}  // namespace tpsim
