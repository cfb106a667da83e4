// Exported shell files: their options and number of GPUs, and the names of exported files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "frameworks/launch/imported_plan.h"
#include "frameworks/launch/launch_options.h"

namespace tpsim {

inline constexpr std::string_view kDeepSpeedConfigFile = "ds_config.json";
inline constexpr std::string_view kNemoYamlFile = "nemo.yaml";
inline constexpr const char* kNanotronYamlFile = "nanotron.yaml";
inline constexpr const char* kAccelerateYamlFile = "accelerate.yaml";
inline constexpr const char* kSlurmFile = "job.slurm";
inline constexpr const char* kJobSetFile = "jobset.yaml";
inline constexpr const char* kConfigMapFile = "configmap.yaml";

// First line of exported shell files. Disables shellcheck warnings: a sourced file lacks a shebang,
// and its variables are used elsewhere.
inline constexpr std::string_view kShellLine = "# shellcheck shell=bash disable=SC2034\n";
std::string without_shell_line(std::string_view text);

// The number of nodes and of GPUs per node that torchrun or srun starts.
struct LaunchSize {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  // As in LaunchHosts. Not read from files.
  std::int64_t domain_gpus = 0, domain_size = 0, nics = 0;
};
LaunchSize launch_size(std::int64_t gpus, std::int64_t gpus_per_node);
// Returns the value of StackPart::kShardGroup for `group` GPUs that share one copy of the shards:
// kShardOverNode if they are those of a host. A host of fewer than eight GPUs may be part of a
// larger NVLink domain.
std::int64_t shard_group_of(std::int64_t group, const LaunchSize& size);

// Returns a bash file for a launcher to source. It sets NUM_NODES, GPUS_PER_NODE and the array
// TRAIN_ARGS, with one option per line.
std::string shell_text(const LaunchSize& size, const LaunchOptions& options);

// Returns "export CUDA_DEVICE_MAX_CONNECTIONS=1", or an empty string with FSDP, where Megatron
// forbids the setting. With one connection kernels run in launch order, so that tensor-parallel
// communication starts early.
std::string ordered_kernels_line(const Plan& plan);

// Options of Megatron-LM whose value is several words.
inline constexpr const char* kRecomputeModules = "--recompute-modules";
inline constexpr const char* kGraphScope = "--cuda-graph-scope";

// Whether the option takes a list: several shell words, or a YAML list.
bool takes_words(std::string_view option);

// The training options of a launch file and its number of GPUs.
struct ShellOptions {
  LaunchSize size;
  std::vector<LaunchOption> options;
  bool is_log = false;  // the options come from a log, which includes defaults
  // Receives the differences between the options and the named model, which takes precedence.
  // Null: differences are errors.
  std::vector<std::string>* differences = nullptr;
};

// Adds the file's path to an error without a location.
template <class T>
Result<T> located(const LaunchFile& file, Result<T> result) {
  if (result.ok() || !result.error().where.empty()) return result;
  Error error = result.error();
  error.where = path_of(file);
  return error;
}

// Returns the file with this name among `files`.
Result<LaunchFile> file_named(const std::vector<LaunchFile>& files, std::string_view name);

}  // namespace tpsim
