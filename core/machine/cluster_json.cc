#include "core/machine/cluster_json.h"

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/json/key_meanings.h"

namespace tpsim {
namespace {

constexpr auto kClusterHostFields = [](auto& io, auto& host) {
  io.text(key_at("cluster/source"), host.source);
  io.quantity(key_at("cluster/link"), host.link);
  io.number(key_at("cluster/link_efficiency"), host.link_efficiency, {1e-6, 1});
  io.quantity(key_at("cluster/memory_bandwidth"), host.memory_bandwidth);
  io.number(key_at("cluster/memory_efficiency"), host.memory_efficiency, {1e-6, 1});
  io.quantity(key_at("cluster/memory"), host.memory);
  io.require(host.link.value() > 0, "link", "it must be above zero");
  io.require(host.memory_bandwidth.value() > 0, "memory_bandwidth", "it must be above zero");
};

constexpr auto kClusterFields = [](auto& io, auto& cluster) {
  io.format("tpsim-cluster/1");
  io.renamed("known_as", "aliases");
  io.renamed("several_ranks_share", "nic_collision_efficiency");
  io.renamed("transfer_share", "p2p_efficiency");
  io.text(key_at("cluster/name"), cluster.name);
  io.text(key_at("cluster/cluster.source"), cluster.source);
  io.text(key_at("cluster/aliases"), cluster.aliases, kOptional);
  io.text(key_at("cluster/usual_for"), cluster.usual_for, kOptional);
  io.text(key_at("cluster/profile"), cluster.profile);
  io.text(key_at("cluster/stack"), cluster.stack);
  io.integer(key_at("cluster/nodes"), cluster.nodes, {});
  io.integer(key_at("cluster/gpus_per_node"), cluster.gpus_per_node, {1, 1024});
  io.integer(key_at("cluster/gpus_per_host"), cluster.gpus_per_host, {0, 1024}, kOptional);
  io.integer(key_at("cluster/partly_used_gpus"), cluster.partly_used_gpus, {0, 1024}, kOptional);
  io.require(cluster.gpus_per_node % host_size(cluster) == 0, "gpus_per_host",
             "it must divide gpus_per_node");
  io.require(cluster.partly_used_gpus <= cluster.gpus_per_node &&
                 cluster.partly_used_gpus % host_size(cluster) == 0,
             "partly_used_gpus",
             "it must be a multiple of gpus_per_host, and at most gpus_per_node");
  io.integer(key_at("cluster/nics_per_node"), cluster.nics_per_node, {1, 1024});
  io.when(!cluster.unequal_nodes.empty(), [&](auto& outer) {
    outer.objects(
        key_at("cluster/unequal_nodes"), cluster.unequal_nodes,
        [](auto& inner, auto& node) {
          inner.integer(key_at("cluster/gpus"), node.gpus, {1, 1024});
          inner.integer(key_at("cluster/nics"), node.nics, {1, 1024});
        },
        kOptional);
  });
  io.object(key_at("cluster/intra_node"),
            [&](auto& inner) { kLinkFields(inner, cluster.intra_node); });
  io.object(key_at("cluster/inter_node"),
            [&](auto& inner) { kLinkFields(inner, cluster.inter_node); });
  io.object(
      key_at("cluster/host"), [&](auto& inner) { kClusterHostFields(inner, cluster.host); },
      kOptional);
  io.integer(key_at("cluster/nccl_channels"), cluster.nccl_channels, {0, 1024}, kOptional);
  io.number(key_at("cluster/nic_collision_efficiency"), cluster.nic_collision_efficiency, {0.01, 1},
            kOptional);
  io.number(key_at("cluster/p2p_efficiency"), cluster.p2p_efficiency, {0.05, 20}, kOptional);
  io.number(key_at("cluster/gpu_clock"), cluster.gpu_clock, {0.3, 1.3}, kOptional);
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
