// Jobs of Slurm and Kubernetes, which embed the launch files of another framework.
#include <fmt/format.h>

#include <optional>

#include "core/scenario/plan_json.h"
#include "frameworks/jobs/job_files.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {
namespace {

using Files = std::vector<LaunchFile>;

bool is_for_own_ranks(const PlanFile& file) { return is_version_of(file.stack, "reference"); }

// Returns the names of the configuration files that a Slurm job may have next to it.
std::vector<std::string> slurm_files() {
  return {kSlurmFile,        std::string(kDeepSpeedConfigFile),
          kPlanFile,         std::string(kNemoYamlFile),
          kNanotronYamlFile, kAccelerateYamlFile};
}

// Returns the framework of a job script: determined by the accompanying files if possible,
// otherwise by its text. Both programs with DeepSpeed have a file of the same name.
LaunchStack stack_of_job(const LaunchFile& job, const Files& files) {
  std::optional<LaunchStack> found;
  for (const Framework* one : frameworks()) {
    const bool has_config = !is_job(one->stack()) && one->files().size() > 1 &&
                            file_named(files, one->files().back()).ok();
    if (has_config && (!found || one->detects_script(job.text))) found = one->stack();
  }
  return found ? *found : stack_of_text(job.text);
}

// Writes the files of the framework that the job starts, and wraps them by `wrap`.
template <class Wrap>
Result<Files> wrapped(LaunchStack job, const PlanFile& file, const LaunchSize& size,
                      const StackSpec& software, const Wrap& wrap) {
  const auto own = launcher_in(job, file, software.launcher);
  if (!own) {
    return cannot_express(
        job, fmt::format("the stack '{}'", file.stack),
        "job files support megatron-lm, megatron-core, megatron-deepspeed, nemo, torchtitan, "
        "nanotron, pytorch-fsdp and deepspeed-zero3; Slurm also reference");
  }
  const Framework& framework = framework_of(*own);
  TPSIM_TRY(Files files, framework.write(file, size, software));
  return wrap(framework, std::move(files));
}

class Slurm final : public Framework {
 public:
  Slurm() : Framework(LaunchStack::kSlurm, slurm_files()) {}

  bool runs(const std::string&) const override { return false; }
  Result<ImportedPlan> read(const Files& files, const ImportInputs& inputs) const override {
    const auto plan_file = file_named(files, kPlanFile);
    if (plan_file.ok()) {
      TPSIM_TRY(const PlanFile plan, parse_plan(plan_file->text, path_of(*plan_file)));
      ImportedPlan result;
      result.model = plan.model;
      result.plan = plan.plan;
      result.parts = plan.parts;
      result.stack = plan.stack;
      return result;
    }
    TPSIM_TRY(const LaunchFile job, file_named(files, kSlurmFile));
    TPSIM_TRY(const JobContents inside, contents(files));
    return located(job, import_plan(inside.stack, inside.files, inputs));
  }
  Result<Files> write(const PlanFile& file, const LaunchSize& size,
                      const StackSpec& software) const override {
    if (is_for_own_ranks(file)) return reference_job(file, size);
    return wrapped(stack(), file, size, software, [&](const Framework& own, Files files) {
      return slurm_job(own, file, size, std::move(files));
    });
  }
  Result<JobContents> contents(const Files& files) const override {
    TPSIM_TRY(const LaunchFile script, file_named(files, kSlurmFile));
    JobContents inside{stack_of_job(script, files), files};
    for (LaunchFile& file : inside.files) {
      if (file.name != kSlurmFile) continue;
      file.path = path_of(file);
      file.name = launch_file_names(inside.stack).front();
    }
    return inside;
  }
};

class Kubernetes final : public Framework {
 public:
  Kubernetes() : Framework(LaunchStack::kKubernetes, {kJobSetFile, kConfigMapFile}) {}

  bool runs(const std::string&) const override { return false; }
  Result<ImportedPlan> read(const Files& files, const ImportInputs& inputs) const override {
    TPSIM_TRY(const KubernetesFiles job, files_of_kubernetes(files));
    return read_script(job.files, job.gpus, inputs);
  }
  Result<Files> write(const PlanFile& file, const LaunchSize& size,
                      const StackSpec& software) const override {
    if (is_for_own_ranks(file)) {
      return cannot_express(stack(), "tpsim's own ranks",
                            "tpsim run needs Slurm or MPI: use --to slurm");
    }
    return wrapped(stack(), file, size, software, [&](const Framework& own, const Files& files) {
      return kubernetes_job(own, file, size, files);
    });
  }
  Result<JobContents> contents(const Files& files) const override {
    TPSIM_TRY(const KubernetesFiles job, files_of_kubernetes(files));
    return slurm_.contents(job.files);
  }

 private:
  // Reads the script on the GPUs that the pods request, or on those that its command states.
  Result<ImportedPlan> read_script(const Files& job, std::int64_t gpus,
                                   const ImportInputs& inputs) const {
    ImportInputs own = inputs;
    if (own.gpus == 0 && gpus > 0) {
      own.gpus = gpus;
      const auto command = read_launch_command(job.front(), inputs);
      const std::int64_t ranks =
          command.ok() ? command->size.nodes * command->size.gpus_per_node : 0;
      if (ranks > 0 && ranks != gpus) {
        return bad_input(
            fmt::format("its pods request {} GPUs, but its command starts {} ranks", gpus, ranks),
            path_of(job.front()), "state the number of GPUs: --gpus N");
      }
    }
    return slurm_.read(job, own);
  }

  Slurm slurm_;
};

}  // namespace

const Framework& slurm() {
  static const Slurm framework;
  return framework;
}
const Framework& kubernetes() {
  static const Kubernetes framework;
  return framework;
}

}  // namespace tpsim
