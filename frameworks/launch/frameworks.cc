// The list of all frameworks, and what is common to them.
#include <fmt/format.h>

#include <filesystem>

#include "core/base/check.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {

// Defined in the framework's folder.
const Framework& megatron_lm();
const Framework& megatron_deepspeed();
const Framework& nemo();
const Framework& torchtitan();
const Framework& nanotron();
const Framework& accelerate();
const Framework& deepspeed_trainer();
const Framework& slurm();
const Framework& kubernetes();

const std::vector<const Framework*>& frameworks() {
  static const std::vector<const Framework*> all = {
      &megatron_lm(), &megatron_deepspeed(), &nemo(),  &torchtitan(), &nanotron(),
      &accelerate(),  &deepspeed_trainer(),  &slurm(), &kubernetes()};
  return all;
}

const Framework& framework_of(LaunchStack stack) {
  const Framework& framework = *frameworks()[static_cast<std::size_t>(stack)];
  TPSIM_CHECK(framework.stack() == stack,
              "the list of frameworks is not in the order of LaunchStack");
  return framework;
}

const Framework* framework_of(Launcher launcher) {
  if (launcher == Launcher::kNone) return nullptr;
  for (const Framework* one : frameworks()) {
    if (one->launcher() == launcher) return one;
  }
  return nullptr;
}

const Framework* framework_of(Launcher launcher, const std::string& stack) {
  if (launcher != Launcher::kNone) return framework_of(launcher);
  for (const Framework* one : frameworks()) {
    if (one->runs(stack)) return one;
  }
  return nullptr;
}

std::optional<LaunchStack> launch_stack_of(Launcher launcher, const std::string& stack) {
  const Framework* const framework = framework_of(launcher, stack);
  return framework == nullptr ? std::nullopt : std::optional(framework->stack());
}

Framework::Framework(LaunchStack stack, Launcher launcher, std::string config)
    : stack_(stack), launcher_(launcher), files_{fmt::format("{}.sh", name_of(stack))} {
  if (!config.empty()) files_.push_back(std::move(config));
}

Framework::Framework(LaunchStack stack, std::vector<std::string> files)
    : stack_(stack), files_(std::move(files)) {}

bool is_version_of(const std::string& stack, std::string_view family) {
  const std::string name = std::filesystem::path(stack).filename().string();
  return name.starts_with(family) &&
         (name.size() == family.size() || name[family.size()] == '-' || name[family.size()] == '.');
}

bool Framework::runs(const std::string& stack) const {
  return is_version_of(stack, name_of(stack_));
}

bool Framework::detects_script(std::string_view) const { return false; }
bool Framework::detects_settings(const std::vector<FlatSetting>&) const { return false; }

Result<ImportedPlan> Framework::read(const std::vector<LaunchFile>& files,
                                     const ImportInputs& inputs) const {
  return read_script(*this, files, inputs);
}

Result<ImportedPlan> Framework::read_command(LaunchCommand, const LaunchFile& script,
                                             const std::vector<LaunchFile>&,
                                             const ImportInputs&) const {
  return bad_input(fmt::format("states its plan for {} in {}, not in the script", name_of(stack_),
                               files_.back()),
                   path_of(script), fmt::format("import {}", files_.back()));
}

Result<ImportedPlan> Framework::read_settings(const std::vector<FlatSetting>&, const LaunchFile&,
                                              const ImportInputs&) const {
  throw BugError("a framework that detects no settings was given some");
}

std::string Framework::start_command(const ModelSpec&, const std::string&) const {
  throw BugError("a job does not start ranks of another job");
}

Status Framework::prepare_check(const std::vector<LaunchFile>& files, const ModelSpec&,
                                JudgedFiles& judged) const {
  if (files_.size() == 1) return Ok{};
  TPSIM_TRY(LaunchFile config, file_named(files, files_.back()));
  TPSIM_TRY(judged.settings, flat_settings(config));
  judged.given.set("file", config.name);
  judged.files.push_back(std::move(config));
  return Ok{};
}

Result<JobContents> Framework::contents(const std::vector<LaunchFile>& files) const {
  return JobContents{stack_, files};
}

std::string torchrun_command(const std::string& job, std::string_view program,
                             std::string_view arguments) {
  return fmt::format(
      "torchrun --nnodes \"$NUM_NODES\" \\\n"
      "  --nproc_per_node \"$GPUS_PER_NODE\" --rdzv_id {} --rdzv_backend c10d \\\n"
      "  --rdzv_endpoint \"$MASTER_ADDR:6000\" {} {}\n",
      job, program, arguments);
}

}  // namespace tpsim
