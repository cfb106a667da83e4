// Cluster files: {"format": "tpsim-cluster/1", ...}.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/machine/cluster_spec.h"

namespace tpsim {

Result<ClusterSpec> read_cluster(const std::filesystem::path& path);
Result<ClusterSpec> parse_cluster(std::string_view text, const std::string& file);

std::string to_json(const ClusterSpec& cluster);

// The JSON schema of cluster files.
JsonValue cluster_schema();

}  // namespace tpsim
