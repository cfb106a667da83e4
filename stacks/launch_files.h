// A plan as the launch files of a training stack, and back.
//
// What a stack cannot express is an error with the reason; nothing is dropped or approximated. Data
// paths, tokenizer, learning rate and checkpoints are the user's: they are no part of a plan.
// Reading back checks the rules that the stack itself checks and gives exactly the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan_file.h"
#include "core/result.h"
#include "core/stack_spec.h"

namespace tpsim {

enum class LaunchStack : std::uint8_t {
  kMegatronLm,  // NVIDIA Megatron-LM (megatron core, 2025-2026): arguments of pretrain_gpt.py
  kMegatronDeepSpeed,  // BigScience's Megatron-DeepSpeed: arguments and DeepSpeed's JSON
  kNemo,               // NeMo Megatron-Bridge: YAML overrides of a recipe
  kTorchTitan,         // torchtitan (2026): command-line options
  kSlurm,              // a job script around the arguments of the plan's own stack
};
inline constexpr int kLaunchStackCount = static_cast<int>(LaunchStack::kSlurm) + 1;
std::string_view name_of(LaunchStack stack);  // "megatron-lm"

struct LaunchFile {
  std::string name;
  std::string text;
};

// The names that files of this stack may have, the one that holds the arguments first.
std::vector<std::string> launch_file_names(LaunchStack stack);

// `training` says what the stack that predicted the plan overlaps with compute; the files ask for
// it where a stack has a switch.
Result<std::vector<LaunchFile>> export_plan(LaunchStack stack, const PlanFile& file,
                                            std::int64_t gpus_per_node,
                                            const TrainingOptions& training = {});

struct ImportedPlan {
  Plan plan;
  std::vector<std::string> outside;  // settings that no plan is made of: "--lr"
};

// The plan of files that export_plan wrote, or that people wrote in the same form. The model is
// what the files are for; they must agree with it. A setting that is unknown, or that makes a plan
// which tpsim cannot express (fp8), is an error.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ModelSpec& model);

}  // namespace tpsim
