#include "core/machine/cluster_json.h"

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"

namespace tpsim {
namespace {

constexpr auto kClusterHostFields = [](auto& io, auto& host) {
  io.text({"source", "source of the host's numbers"}, host.source);
  io.quantity({"link", "bandwidth between a GPU and its host in one direction"}, host.link);
  io.number({"link_efficiency", "share of the link bandwidth that large copies achieve"},
            host.link_efficiency, {1e-6, 1});
  io.quantity({"memory_bandwidth", "host memory bandwidth per node"}, host.memory_bandwidth);
  io.number(
      {"memory_efficiency", "share of the host memory bandwidth that an optimizer update achieves"},
      host.memory_efficiency, {1e-6, 1});
  io.quantity({"memory", "host memory per node"}, host.memory);
  io.require(host.link.value() > 0, "link", "it must be above zero");
  io.require(host.memory_bandwidth.value() > 0, "memory_bandwidth", "it must be above zero");
};

constexpr auto kClusterFields = [](auto& io, auto& cluster) {
  io.format("tpsim-cluster/1");
  io.renamed("known_as", "aliases");
  io.renamed("several_ranks_share", "nic_collision_efficiency");
  io.renamed("transfer_share", "p2p_efficiency");
  io.text({"name", "name in reports"}, cluster.name);
  io.text({"source", "source of the numbers"}, cluster.source);
  io.text({"aliases", "names of the cluster in tables of measured runs, separated by commas"},
          cluster.aliases, kOptional);
  io.text({"usual_for",
           "GPUs whose measured runs are predicted on this cluster if they name none, separated by "
           "commas; \"A100+NeMo\" applies to frameworks that begin with NeMo, \"A100 until "
           "2024-09\" to rows of that date and earlier"},
          cluster.usual_for, kOptional);
  io.text({"profile", "profile of the GPUs: catalogue name or path"}, cluster.profile);
  io.text({"stack", "default stack: catalogue name or path"}, cluster.stack);
  io.integer({"nodes", "number of nodes"}, cluster.nodes, {});
  io.integer({"gpus_per_node", "GPUs per node"}, cluster.gpus_per_node, {1, 1024});
  io.integer({"gpus_per_host",
              "GPUs per host, if an NVLink domain spans several hosts (trays of an NVL72 rack); a "
              "host fails as a unit and owns the host memory; 0: the host is the node [0]"},
             cluster.gpus_per_host, {0, 1024}, kOptional);
  io.integer({"partly_used_gpus",
              "GPUs per node that a job of several nodes uses if gpus_per_node does not divide its "
              "size, such as 64 of 72; 0: all [0]"},
             cluster.partly_used_gpus, {0, 1024}, kOptional);
  io.require(cluster.gpus_per_node % host_size(cluster) == 0, "gpus_per_host",
             "it must divide gpus_per_node");
  io.require(cluster.partly_used_gpus <= cluster.gpus_per_node &&
                 cluster.partly_used_gpus % host_size(cluster) == 0,
             "partly_used_gpus",
             "it must be a multiple of gpus_per_host, and at most gpus_per_node");
  io.integer({"nics_per_node", "NICs per node, which the GPUs of the node share"},
             cluster.nics_per_node, {1, 1024});
  io.object({"intra_node", "link between GPUs of a node"},
            [&](auto& inner) { kLinkFields(inner, cluster.intra_node); });
  io.object({"inter_node", "network between nodes, per NIC"},
            [&](auto& inner) { kLinkFields(inner, cluster.inter_node); });
  io.object(
      {"host", "CPUs and memory of a node, which an offloaded optimizer uses"},
      [&](auto& inner) { kClusterHostFields(inner, cluster.host); }, kOptional);
  io.integer({"nccl_channels",
              "channels that NCCL opens between nodes per communicator, each through one NIC; 0: "
              "one per NIC next to the communicator's ranks [0]"},
             cluster.nccl_channels, {0, 1024}, kOptional);
  io.number(
      {"nic_collision_efficiency",
       "loss from NCCL rings that share NICs: g > 1 groups with several ranks each on a node, "
       "communicating at once, get this number ^ (1 + log2(g) / 2) of the node's bandwidth [1]"},
      cluster.nic_collision_efficiency, {0.01, 1}, kOptional);
  io.number(
      {"p2p_efficiency", "bandwidth of pipeline sends between nodes, relative to collectives [1]"},
      cluster.p2p_efficiency, {0.05, 20}, kOptional);
  io.number({"gpu_clock", "GPU clock sustained in GEMMs, relative to that of the profile [1]"},
            cluster.gpu_clock, {0.3, 1.3}, kOptional);
  calibration_field(io, cluster.calibrated);
};

}  // namespace

Result<ClusterSpec> read_cluster(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  return parse_cluster(text, path.string());
}

Result<ClusterSpec> parse_cluster(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return spec_from_json<ClusterSpec>(root, file, kClusterFields);
}

std::string to_json(const ClusterSpec& cluster) {
  return to_text(json_from_spec(cluster, kClusterFields));
}

std::optional<FoundNumber> number_at(ClusterSpec& cluster, std::string_view path) {
  return number_at(cluster, path, kClusterFields);
}

JsonValue cluster_schema() { return schema_from_fields<ClusterSpec>(kClusterFields); }

}  // namespace tpsim
