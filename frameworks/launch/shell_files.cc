#include "frameworks/launch/shell_files.h"

#include <fmt/format.h>

namespace tpsim {
namespace {

// Adds single quotes if a shell would interpret the value.
std::string quoted(const std::string& value) {
  const bool plain = value.find_first_of("|*()'\" $") == std::string::npos;
  return plain ? value : "'" + value + "'";
}

}  // namespace

LaunchSize launch_size(std::int64_t gpus, std::int64_t gpus_per_node) {
  if (gpus <= gpus_per_node) return {1, gpus};
  return {gpus / gpus_per_node, gpus_per_node};
}

std::int64_t shard_group_of(std::int64_t group, const LaunchSize& size) {
  constexpr std::int64_t kUsualNode = 8;
  const bool is_node = size.nodes > 1 && group == size.gpus_per_node && group >= kUsualNode;
  return is_node ? kShardOverNode : group;
}

bool takes_words(std::string_view option) {
  return option == kRecomputeModules || option == kGraphScope || option == "--compile.components";
}

std::string shell_text(const LaunchSize& size, const LaunchOptions& options) {
  std::string text =
      fmt::format("NUM_NODES={}\nGPUS_PER_NODE={}\nTRAIN_ARGS=(\n", size.nodes, size.gpus_per_node);
  for (const LaunchOption& option : options.all()) {
    text += "  " + option.key;
    const bool is_list = takes_words(option.key);  // needs no quotes
    if (!option.value.empty()) text += " " + (is_list ? option.value : quoted(option.value));
    text += "\n";
  }
  return text + ")\n";
}

std::string without_shell_line(std::string_view text) {
  if (text.starts_with(kShellLine)) text.remove_prefix(kShellLine.size());
  return std::string(text);
}

std::string ordered_kernels_line(const Plan& plan) {
  return plan.zero < 2 ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" : "";
}

Result<LaunchFile> file_named(const std::vector<LaunchFile>& files, std::string_view name) {
  for (const LaunchFile& file : files) {
    if (file.name == name) return file;
  }
  return bad_input(fmt::format("the file {} is missing", name));
}

}  // namespace tpsim
