// Cluster files: {"format": "tpsim-cluster/1", ...}.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/field_finder.h"
#include "core/json/json_value.h"
#include "core/machine/cluster_spec.h"

namespace tpsim {

Result<ClusterSpec> read_cluster(const std::filesystem::path& path);
Result<ClusterSpec> parse_cluster(std::string_view text, const std::string& file);

std::string to_json(const ClusterSpec& cluster);

// The JSON schema of cluster files.
JsonValue cluster_schema();

// Returns the number of a key, such as "inter_node.latency"; empty if there is none. It points into
// `cluster`.
std::optional<FoundNumber> number_at(ClusterSpec& cluster, std::string_view path);

}  // namespace tpsim
