// Describes the machine on which a profile was measured as a cluster of one node.
#pragma once

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"

namespace tpsim {

// Returns the profiled machine as a cluster of one node with machine.devices devices (CPU cores or
// GPUs). Without a link in the profile, the link has the highest bus bandwidth and the lowest time
// of the measured collectives. Without collectives, the bandwidth is the device's memory bandwidth.
// Requires machine.devices > 0.
ClusterSpec machine_cluster(const Profile& profile);

}  // namespace tpsim
