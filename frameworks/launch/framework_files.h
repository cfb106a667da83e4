// Writers and readers of the other frameworks.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

Result<LaunchOptions> deepspeed_settings(const PlanFile& file);
std::string deepspeed_json(const PlanFile& file);
// Removes the switches that disable fused kernels, and returns them as software parts.
PartValues take_deepspeed_parts(std::vector<LaunchOption>& options);
Result<Plan> plan_of_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                               const ModelSpec& model, LeftSettings& left);
// Whether the options are those of Microsoft's Megatron-DeepSpeed, which follows Megatron-Core, and
// not of BigScience's fork.
bool speaks_megatron_core(const std::vector<LaunchOption>& options);
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                                      const ModelSpec& model, LeftSettings& left);
void read_torchtitan_recipe(LaunchOptionReader& in, Plan& plan);
Result<LaunchOptions> torchtitan_settings(const PlanFile& file, const LaunchSize& size);
// Sets the model's sequence to the stated one, and its dropout to 0, unless `keeps_seq`.
// torchtitan's models do not have dropout.
void take_titan_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Removes options that select an implementation: torch.compile, async tensor parallelism.
PartValues take_torchtitan_parts(std::vector<LaunchOption>& options);
// Converts options to a plan. Adds the shard group, which follows from the degrees, to `parts`.
Result<Plan> plan_of_torchtitan(const ShellOptions& shell, const ModelSpec& model,
                                PartValues& parts, LeftSettings& left);
Result<std::string> nanotron_yaml(const PlanFile& file);
Result<std::string> accelerate_yaml(const PlanFile& file, const LaunchSize& size);
// Returns the arguments of a script with Hugging Face's Trainer. `parts` is the plan's software.
// `checkpoints`: the Trainer, and not FSDP's settings, enables full recompute.
LaunchOptions trainer_arguments(const PlanFile& file, const SoftwareParts& parts, bool checkpoints);
LaunchOptions accelerate_arguments(const PlanFile& file, const SoftwareParts& parts);
Result<std::string> deepspeed_trainer_json(const PlanFile& file, const StackSpec& software);
LaunchOptions deepspeed_trainer_arguments(const PlanFile& file, const SoftwareParts& parts);
Result<ImportedPlan> import_accelerate(const std::vector<LaunchFile>& files,
                                       const ImportInputs& inputs);

}  // namespace tpsim
