#include <array>

#include "app/documents/key_meanings.h"

namespace tpsim::app {
namespace {

constexpr std::array kClusterMeanings = {
    KeyMeaning{"cluster.known_as",
               "names of the cluster in tables of measured runs, separated by commas"},
    KeyMeaning{
        "cluster.usual_for",
        "GPUs whose measured runs are predicted on this cluster if they name none, separated "
        "by commas; \"A100+NeMo\" applies to frameworks that begin with NeMo"},
    KeyMeaning{"cluster.profile", "profile of the GPUs: catalogue name or path"},
    KeyMeaning{"cluster.stack", "default stack: catalogue name or path"},
    KeyMeaning{"cluster.nodes", "number of nodes"},
    KeyMeaning{"cluster.gpus_per_node", "GPUs per node"},
    KeyMeaning{"cluster.gpus_per_host",
               "GPUs per host, if an NVLink domain spans several hosts (trays of an NVL72 rack); a "
               "host fails as a unit and owns the host memory; 0: the host is the node [0]"},
    KeyMeaning{"cluster.partly_used_gpus",
               "GPUs per node that a job of several nodes uses if gpus_per_node does not divide "
               "its size, such as 64 of 72; 0: all [0]"},
    KeyMeaning{"cluster.nics_per_node", "NICs per node, which the GPUs of the node share"},
    KeyMeaning{"cluster.intra_node", "link between GPUs of a node"},
    KeyMeaning{"cluster.inter_node", "network between nodes, per NIC"},
    KeyMeaning{"cluster.intra_node.kind", "name of the link, e.g. NVLink 4"},
    KeyMeaning{"cluster.intra_node.bandwidth", "bandwidth per GPU in one direction"},
    KeyMeaning{"cluster.intra_node.latency cluster.inter_node.latency",
               "time of one hop of a small message"},
    KeyMeaning{"cluster.intra_node.efficiency cluster.inter_node.efficiency",
               "share of the bandwidth that large messages achieve"},
    KeyMeaning{"cluster.inter_node.kind", "name of the network, e.g. InfiniBand NDR"},
    KeyMeaning{"cluster.inter_node.bandwidth", "bandwidth per NIC in one direction"},
    KeyMeaning{"cluster.host", "CPUs and memory of a node, which an offloaded optimizer uses"},
    KeyMeaning{"cluster.host.source", "source of the host's numbers"},
    KeyMeaning{"cluster.host.link", "bandwidth between a GPU and its host in one direction"},
    KeyMeaning{"cluster.host.link_efficiency",
               "share of the link bandwidth that large copies achieve"},
    KeyMeaning{"cluster.host.memory_bandwidth", "host memory bandwidth per node"},
    KeyMeaning{"cluster.host.memory_efficiency",
               "share of the host memory bandwidth that an optimizer update achieves"},
    KeyMeaning{"cluster.host.memory", "host memory per node"},
    KeyMeaning{"cluster.nccl_channels",
               "channels that NCCL opens between nodes per communicator, each through one NIC; 0: "
               "one per NIC next to the communicator's ranks [0]"},
    KeyMeaning{
        "cluster.several_ranks_share",
        "loss from NCCL rings that share NICs: g > 1 groups with several ranks each on a node, "
        "communicating at once, get this number ^ (1 + log2(g) / 2) of the node's bandwidth [1]"},
    KeyMeaning{"cluster.transfer_share",
               "bandwidth of pipeline sends between nodes, relative to collectives [1]"},
    KeyMeaning{"cluster.gpu_clock",
               "GPU clock sustained in GEMMs, relative to that of the profile [1]"},
    KeyMeaning{"cluster.calibrated", "results of tpsim calibrate (docs/calibrate.md)"},
    KeyMeaning{"cluster.calibrated.rows",
               "number of measured steps to which the constants were fitted"},
    KeyMeaning{"cluster.calibrated.on", "name of the table of measured steps"},
    KeyMeaning{"cluster.calibrated.date", "date of the fit, YYYY-MM-DD"},
    KeyMeaning{"cluster.calibrated.left_out_error",
               "mean relative error of the step time if each measured step is predicted from a fit "
               "to the others"},
    KeyMeaning{"cluster.calibrated.host_spread",
               "relative standard deviation of host times that remains after the fit"},
    KeyMeaning{"cluster.calibrated.kernel_spread",
               "relative standard deviation that remains after the fit, of times of kernels "
               "without sample in the profile"},
    KeyMeaning{"cluster.calibrated.network_spread",
               "relative standard deviation that remains after the fit, of times of collectives "
               "between nodes"},
};

}  // namespace

std::span<const KeyMeaning> cluster_key_meanings() { return kClusterMeanings; }

}  // namespace tpsim::app
