// The price list of collectives: how long a group waits for one.
//
// Groups on one node are priced from the profile's measured collectives where it has them, else
// from the links by NCCL's structure (costs/nccl_model.h). Where the cluster's link inside a node
// is another than the one they were measured on, each sample is scaled by what that structure takes
// on the one over what it takes on the other. Groups across nodes always are: the NICs of a node
// are shared by the groups that cross its boundary at the same time, and a group reaches no more
// NICs than its members have next to them; inside a node the ring runs at the link's bandwidth.
// Small measured all-reduces calibrate the latencies inside a node. Ignored: contention beyond the
// node (the fabric is taken as full), what a collective takes from concurrent compute.
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

  // `bytes` as in CollectiveRecord. Send and receive are one transfer to a neighbour. Zero for a
  // group of one and for an empty message; grows with bytes, never grows with bandwidth.
  Seconds price(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement) const;
  // Slice by slice to its owner, or from it to all: reductions or broadcasts, each of which has one
  // rank at its end and takes one NIC of a node, one after the other. `bytes` of all slices.
  Seconds price_owner_broadcasts(Bytes bytes, const GroupPlacement& placement) const;
  // Tokens to their experts' ranks, `network` bytes from each rank to other nodes and `inside`
  // bytes over the links of a node beside them, which copying kernels fill to `most`.
  Seconds price_dispatch(Bytes network, Bytes inside, BytesPerSecond most,
                         const GroupPlacement& placement) const;
  // One transfer while `senders_per_node` ranks of the node send at the same time.
  Seconds price_point_to_point(Bytes bytes, bool crosses_nodes,
                               std::int64_t senders_per_node) const;

  // Formula, inputs and where the constants come from.
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
  std::string
      moved_from_;  // the link that samples were scaled from; empty where it is the cluster's
  Seconds base_latency_;
  Seconds intra_latency_;
};

}  // namespace tpsim
