// Prices of collectives.
//
// Groups on one node use the profile's measured collectives if available, else the links with
// NCCL's algorithms (costs/nccl_model.h). If the cluster's intra-node link differs from the
// measured one, each sample is scaled by the ratio of the two modelled times.
//
// Groups across nodes always use the model. Groups that cross a node's boundary at the same time
// share its NICs, and a group uses at most the NICs next to its members. Inside a node the ring
// runs at the link's bandwidth. Small measured all-reduces calibrate the latencies inside a node.
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

  // `bytes` as in CollectiveRecord. Send and receive are one transfer to a neighbour. Returns 0 for
  // a group of one and for an empty message. The time never decreases with bytes and never
  // increases with bandwidth.
  Seconds price(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement) const;
  // Time of one reduction (or broadcast) per slice to (or from) the slice's owner, one after
  // another. Each has one rank as its end and so uses one NIC of a node. `bytes` is the total of
  // all slices.
  Seconds price_owner_broadcasts(Bytes bytes, const GroupPlacement& placement) const;
  // Time of an MoE all-to-all: `network` bytes from each rank to other nodes, overlapped with
  // `inside` bytes over the links of a node. Copy kernels reach at most the bandwidth `most` on the
  // links.
  Seconds price_dispatch(Bytes network, Bytes inside, BytesPerSecond most,
                         const GroupPlacement& placement) const;
  // Time of one transfer while `senders_per_node` ranks of the node send at the same time.
  Seconds price_point_to_point(Bytes bytes, bool crosses_nodes,
                               std::int64_t senders_per_node) const;

  // Returns formula, inputs and sources of the constants as text.
  std::string explain(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement) const;
  std::string explain_point_to_point(Bytes bytes, bool crosses_nodes,
                                     std::int64_t senders_per_node) const;

 private:
  CollectivePath path_of(const GroupPlacement& placement) const;
  BytesPerSecond group_bandwidth(std::int64_t ranks_per_node, std::int64_t groups_per_node) const;
  CollectivePath transfer_path(bool crosses_nodes, std::int64_t senders_per_node) const;
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
