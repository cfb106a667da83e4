#include "frameworks/launch/launch_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/settings_text.h"
#include "frameworks/launch/framework_files.h"
#include "frameworks/launch/job_files.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/named_model.h"
#include "frameworks/launch/nemo_settings.h"

namespace tpsim {
namespace {

using Files = std::vector<LaunchFile>;

constexpr const char* kConfigFile = kDeepSpeedConfigFile.data();
constexpr const char* kYamlFile = kNemoYamlFile.data();
constexpr const char* kOrderedKernels = "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";

std::string shell_name(LaunchStack stack) { return fmt::format("{}.sh", name_of(stack)); }

// Returns export lines for PyTorch's allocator, blocking CUDA launches and TF32, if the plan sets
// these parts.
std::string part_lines(const PartValues& parts) {
  std::string lines;
  const auto expands = parts.find(StackPart::kExpandableSegments);
  if (expands != parts.end()) {
    lines += fmt::format("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:{}\n",
                         expands->second != 0 ? "True" : "False");
  }
  const auto blocks = parts.find(StackPart::kBlockingLaunches);
  if (blocks != parts.end() && blocks->second != 0) lines += "export CUDA_LAUNCH_BLOCKING=1\n";
  const auto matmul = parts.find(StackPart::kFp32Matmul);
  if (matmul != parts.end()) {
    const bool is_tf32 = matmul->second == static_cast<std::int64_t>(Fp32Matmul::kTf32);
    lines += fmt::format("export {}={}\n", kTf32Switch, is_tf32 ? 1 : 0);
  }
  return lines;
}

// Returns export lines for CUDA_DEVICE_MAX_CONNECTIONS and HybridEP. Overlapping the all-to-all of
// experts needs 32 connections instead of one. HybridEP reads the NVLink domain from variables
// (scripts/performance/utils/utils.py of Megatron-Bridge 067f987).
std::string expert_lines(const PlanFile& file, const LaunchSize& size, const StackSpec& software) {
  const std::int64_t ep = file.plan.degrees.ep;
  const bool has_groups = has_experts(file.model) && ep > 1;
  std::string lines = has_groups && software.parts.ep_overlap
                          ? "export CUDA_DEVICE_MAX_CONNECTIONS=32\n"
                          : ordered_kernels_line(file.plan);
  if (has_groups && software.parts.dispatcher == Dispatcher::kHybridEp && size.domain_size > 0) {
    lines += fmt::format(
        "export NVLINK_DOMAIN_SIZE={}\nexport NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN={}\n"
        "export USE_MNNVL={}\n",
        size.domain_size, std::min(ep, size.domain_gpus),
        size.domain_size > size.gpus_per_node ? 1 : 0);
  }
  return lines;
}

LaunchFile shell_file(LaunchStack stack, const PlanFile& file, const LaunchSize& size,
                      const LaunchOptions& options, const std::string& environment) {
  return {shell_name(stack), std::string(kShellLine) + model_line(file.model) + environment +
                                 part_lines(file.parts) + shell_text(size, options)};
}

Result<Files> export_megatron(const PlanFile& file, const LaunchSize& size,
                              const StackSpec& software) {
  TPSIM_TRY(LaunchOptions options, megatron_settings(LaunchStack::kMegatronLm, file, software));
  add_shard_instances(file.plan, size.domain_gpus, software.parts.shard_group, options);
  return Files{shell_file(LaunchStack::kMegatronLm, file, size, options,
                          expert_lines(file, size, software))};
}

Result<Files> export_deepspeed(const PlanFile& file, const LaunchSize& size) {
  TPSIM_TRY(const LaunchOptions options, deepspeed_settings(file));
  return Files{shell_file(LaunchStack::kMegatronDeepSpeed, file, size, options,
                          ordered_kernels_line(file.plan)),
               {kConfigFile, deepspeed_json(file)}};
}

// Writes two files. The shell file states the number of GPUs, which the YAML cannot state.
Result<Files> export_nemo(const PlanFile& file, const LaunchSize& size, const StackSpec& software) {
  TPSIM_TRY(LaunchOptions options, megatron_settings(LaunchStack::kNemo, file, software));
  add_shard_instances(file.plan, size.domain_gpus, software.parts.shard_group, options);
  TPSIM_TRY(const NemoPrecision precision, nemo_precision(file.plan, options));
  LaunchOptions launcher;
  launcher.add("--config-file", kYamlFile);
  return Files{
      shell_file(LaunchStack::kNemo, file, size, launcher, expert_lines(file, size, software)),
      {kYamlFile,
       precision.yaml + nemo_yaml(precision.others, nemo_layers(file.model, options.all()))}};
}

Result<Files> export_torchtitan(const PlanFile& file, const LaunchSize& size) {
  TPSIM_TRY(const LaunchOptions options, torchtitan_settings(file, size));
  return Files{shell_file(LaunchStack::kTorchTitan, file, size, options, "")};
}

Result<Files> export_nanotron(const PlanFile& file, const LaunchSize& size) {
  TPSIM_TRY(std::string yaml, nanotron_yaml(file));
  LaunchOptions launcher;
  launcher.add("--config-file", kNanotronYamlFile);
  return Files{shell_file(LaunchStack::kNanotron, file, size, launcher, kOrderedKernels),
               {kNanotronYamlFile, std::move(yaml)}};
}

Result<Files> export_accelerate(const PlanFile& file, const LaunchSize& size,
                                const StackSpec& software) {
  TPSIM_TRY(std::string yaml, accelerate_yaml(file, size));
  const LaunchOptions arguments = accelerate_arguments(file, software.parts);
  return Files{shell_file(LaunchStack::kAccelerate, file, size, arguments, ""),
               {kAccelerateYamlFile, std::move(yaml)}};
}

Result<Files> export_deepspeed_trainer(const PlanFile& file, const LaunchSize& size,
                                       const StackSpec& software) {
  TPSIM_TRY(std::string json, deepspeed_trainer_json(file, software));
  const LaunchOptions arguments = deepspeed_trainer_arguments(file, software.parts);
  return Files{shell_file(LaunchStack::kDeepSpeed, file, size, arguments, ""),
               {kConfigFile, std::move(json)}};
}

// Exports the files of a launcher that is not a job.
Result<Files> export_own(LaunchStack stack, const PlanFile& file, const LaunchSize& size,
                         const StackSpec& software) {
  switch (stack) {
    case LaunchStack::kMegatronLm: return export_megatron(file, size, software);
    case LaunchStack::kMegatronDeepSpeed: return export_deepspeed(file, size);
    case LaunchStack::kNemo: return export_nemo(file, size, software);
    case LaunchStack::kTorchTitan: return export_torchtitan(file, size);
    case LaunchStack::kNanotron: return export_nanotron(file, size);
    case LaunchStack::kAccelerate: return export_accelerate(file, size, software);
    case LaunchStack::kDeepSpeed: return export_deepspeed_trainer(file, size, software);
    case LaunchStack::kSlurm:
    case LaunchStack::kKubernetes: break;
  }
  throw BugError("a job is not a launcher");
}

Result<Files> export_job(LaunchStack job, const PlanFile& file, const LaunchSize& size,
                         const StackSpec& software) {
  const bool slurm = job == LaunchStack::kSlurm;
  if (is_version_of(file.stack, "reference")) {
    if (slurm) return reference_job(file, size);
    return cannot_express(job, "tpsim's own ranks", "tpsim run needs Slurm or MPI: use --to slurm");
  }
  const auto own = launcher_in(job, file, software.launcher);
  if (!own) {
    return cannot_express(
        job, fmt::format("the stack '{}'", file.stack),
        "job files support megatron-lm, megatron-core, megatron-deepspeed, "
        "nemo, torchtitan, nanotron, pytorch-fsdp and deepspeed-zero3; Slurm also "
        "reference");
  }
  TPSIM_TRY(Files files, export_own(*own, file, size, software));
  return slurm ? slurm_job(*own, file, size, std::move(files))
               : kubernetes_job(*own, file, size, files);
}

}  // namespace

std::optional<LaunchStack> launcher_in(LaunchStack stack, const PlanFile& file, Launcher launcher) {
  if (!is_job(stack)) return stack;
  for (const LaunchStack own : all_of<LaunchStack>()) {
    const bool is_named = launcher != Launcher::kNone && launcher_of(own) == launcher;
    if (is_named || is_version_of(file.stack, name_of(own))) return own;
  }
  if (is_version_of(file.stack, "megatron-core")) return LaunchStack::kMegatronLm;
  if (is_version_of(file.stack, "pytorch-fsdp")) return LaunchStack::kAccelerate;
  return std::nullopt;
}

std::vector<std::string> launch_file_names(LaunchStack stack) {
  switch (stack) {
    case LaunchStack::kMegatronLm:
    case LaunchStack::kTorchTitan: return {shell_name(stack)};
    case LaunchStack::kMegatronDeepSpeed:
    case LaunchStack::kDeepSpeed: return {shell_name(stack), kConfigFile};
    case LaunchStack::kNemo: return {shell_name(stack), kYamlFile};
    case LaunchStack::kNanotron: return {shell_name(stack), kNanotronYamlFile};
    case LaunchStack::kAccelerate: return {shell_name(stack), kAccelerateYamlFile};
    case LaunchStack::kSlurm:
      return {kSlurmFile, kConfigFile,       "plan.json",
              kYamlFile,  kNanotronYamlFile, kAccelerateYamlFile};
    case LaunchStack::kKubernetes: return {kJobSetFile, kConfigMapFile};
  }
  throw BugError("a launch stack without files");
}

LaunchHosts launch_hosts(const ClusterSpec& cluster, std::int64_t gpus) {
  LaunchHosts hosts(host_size(cluster));
  hosts.domain_size = cluster.gpus_per_node;
  hosts.domain_gpus = std::min(gpus, node_size(cluster, gpus));
  hosts.nics = cluster.nics_per_node * hosts.gpus / cluster.gpus_per_node;
  return hosts;
}

Result<Files> export_plan(LaunchStack stack, const PlanFile& file, const LaunchHosts& hosts,
                          const StackSpec& software) {
  // Write the environment variable of expandable segments also if only the stack, and not the plan,
  // enables them, because launchers do not have an option for the allocator.
  PlanFile whole = file;
  if (software.parts.expandable_segments)
    whole.parts.try_emplace(StackPart::kExpandableSegments, 1);
  TPSIM_TRY_STATUS(validate(file.plan, file.model));
  const std::int64_t gpus = gpu_count(file.plan);
  if (gpus > hosts.gpus && gpus % hosts.gpus != 0) {
    return bad_input(
        fmt::format("{} GPUs are not a multiple of the {} GPUs per node", gpus, hosts.gpus));
  }
  LaunchSize size = launch_size(gpus, hosts.gpus);
  size.domain_gpus = hosts.domain_gpus;
  size.domain_size = hosts.domain_size;
  size.nics = hosts.nics;
  const StackSpec stated = with_parts(software, whole.parts);
  return is_job(stack) ? export_job(stack, whole, size, stated)
                       : export_own(stack, whole, size, stated);
}

LaunchStack stack_of_text(std::string_view text) {
  const auto holds = [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  if (has_arguments_block(text)) return LaunchStack::kMegatronLm;
  if (holds("--deepspeed")) return LaunchStack::kMegatronDeepSpeed;
  if (holds("--parallelism.") || holds("--training.")) return LaunchStack::kTorchTitan;
  for (const char* part :
       {"--job.config_file", "--job.config-file", "torchtitan.train", "torchtitan/train.py"}) {
    if (holds(part)) return LaunchStack::kTorchTitan;
  }
  return LaunchStack::kMegatronLm;
}

}  // namespace tpsim
