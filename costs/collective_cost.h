// Time of collectives and point-to-point transfers on a cluster.
//
// A group inside one node is priced from the profile's measured collectives. If the cluster's
// intra-node link differs from the measured one, each sample is scaled by the ratio of the two
// modelled times. Without samples, the time follows from the link and NCCL's algorithms
// (costs/nccl_model.h).
//
// A group across nodes is always modelled. Groups that communicate across nodes at the same time
// share the NICs of a node, and a group uses at most the NICs of its members' GPUs. Inside a node
// the ring runs at the bandwidth of the link. The base latency and the latency per hop are
// calibrated with measured all-reduces of small messages.
//
// Not modelled: contention in the fabric (assumed non-blocking), and the effect of a collective on
// concurrent compute.
#pragma once

#include <cstdint>
#include <string>

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/plan/rank_layout.h"
#include "costs/collective_table.h"
#include "costs/nccl_model.h"

namespace tpsim {

class CollectiveCostModel {
 public:
  CollectiveCostModel(const Profile& profile, const ClusterSpec& cluster);

  // Returns the time of one collective. `bytes` is defined in CollectiveRecord. kSend and kReceive
  // are point-to-point transfers. Returns 0 for a group of one rank and for an empty message. The
  // time never decreases with bytes and never increases with bandwidth.
  Seconds price(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement) const;
  // Returns the time to broadcast the slices of an array one after another, each from the rank that
  // owns it. Reductions to the owners take the same time. Each broadcast uses one NIC per node.
  // `bytes` is the total of all slices.
  Seconds price_owner_broadcasts(Bytes bytes, const GroupPlacement& placement) const;
  // Returns the time of an MoE all-to-all. Each rank sends `network` bytes to other nodes and, at
  // the same time, `inside` bytes over the links inside its node. `most` limits the bandwidth of
  // the copy kernels on the links.
  Seconds price_dispatch(Bytes network, Bytes inside, BytesPerSecond most,
                         const GroupPlacement& placement) const;
  // Returns the time of one transfer while `senders_per_node` ranks of the node send at once.
  // `node`: as in GroupPlacement.
  Seconds price_point_to_point(Bytes bytes, bool crosses_nodes, std::int64_t senders_per_node,
                               const NodeShape& node = {}) const;

  // Returns the formula, its inputs and the sources of the constants as text.
  std::string explain(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement) const;
  std::string explain_point_to_point(Bytes bytes, bool crosses_nodes, std::int64_t senders_per_node,
                                     const NodeShape& node = {}) const;

 private:
  CollectivePath path_of(const GroupPlacement& placement) const;
  // Returns the placement's node, or a node of the cluster.
  NodeShape node_of(const NodeShape& limiting) const;
  BytesPerSecond group_bandwidth(const GroupPlacement& placement) const;
  CollectivePath transfer_path(bool crosses_nodes, std::int64_t senders_per_node,
                               const NodeShape& node) const;
  void calibrate_latencies();
  void move_samples(const Profile& profile);

  CollectiveTable table_;
  ClusterSpec cluster_;
  std::string profile_name_;
  std::string moved_from_;  // link of the scaled samples; empty if they were not scaled
  Seconds base_latency_;
  Seconds intra_latency_;
};

}  // namespace tpsim
