#include "core/machine/cluster_json.h"

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"

namespace tpsim {
namespace {

constexpr auto kClusterHostFields = [](auto& io, auto& host) {
  io.text("source", host.source);
  io.quantity("link", host.link);
  io.number("link_efficiency", host.link_efficiency, {1e-6, 1});
  io.quantity("memory_bandwidth", host.memory_bandwidth);
  io.number("memory_efficiency", host.memory_efficiency, {1e-6, 1});
  io.quantity("memory", host.memory);
  io.require(host.link.value() > 0, "link", "it must be above zero");
  io.require(host.memory_bandwidth.value() > 0, "memory_bandwidth", "it must be above zero");
};

constexpr auto kClusterFields = [](auto& io, auto& cluster) {
  io.format("tpsim-cluster/1");
  io.text("name", cluster.name);
  io.text("source", cluster.source);
  io.text("known_as", cluster.aliases, kOptional);
  io.text("usual_for", cluster.usual_for, kOptional);
  io.text("profile", cluster.profile);
  io.text("stack", cluster.stack);
  io.integer("nodes", cluster.nodes, {});
  io.integer("gpus_per_node", cluster.gpus_per_node, {1, 1024});
  io.integer("gpus_per_host", cluster.gpus_per_host, {0, 1024}, kOptional);
  io.integer("partly_used_gpus", cluster.partly_used_gpus, {0, 1024}, kOptional);
  io.require(cluster.gpus_per_node % host_size(cluster) == 0, "gpus_per_host",
             "it must divide gpus_per_node");
  io.require(cluster.partly_used_gpus <= cluster.gpus_per_node &&
                 cluster.partly_used_gpus % host_size(cluster) == 0,
             "partly_used_gpus",
             "it must be a multiple of gpus_per_host, and at most gpus_per_node");
  io.integer("nics_per_node", cluster.nics_per_node, {1, 1024});
  io.object("intra_node", [&](auto& inner) { kLinkFields(inner, cluster.intra_node); });
  io.object("inter_node", [&](auto& inner) { kLinkFields(inner, cluster.inter_node); });
  io.object(
      "host", [&](auto& inner) { kClusterHostFields(inner, cluster.host); }, kOptional);
  io.integer("nccl_channels", cluster.nccl_channels, {0, 1024}, kOptional);
  io.number("several_ranks_share", cluster.nic_collision_efficiency, {0.01, 1}, kOptional);
  io.number("transfer_share", cluster.p2p_efficiency, {0.05, 20}, kOptional);
  io.number("gpu_clock", cluster.gpu_clock, {0.3, 1.3}, kOptional);
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

JsonValue cluster_schema() { return schema_from_fields<ClusterSpec>(kClusterFields); }

}  // namespace tpsim
