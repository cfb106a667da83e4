// The supported launchers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/enum_words.h"
#include "core/software/launch_rules.h"

namespace tpsim {

enum class LaunchStack : std::uint8_t {
  kMegatronLm,  // NVIDIA Megatron-LM (megatron core, 2025-2026): arguments of pretrain_gpt.py
  kMegatronDeepSpeed,  // BigScience's Megatron-DeepSpeed: arguments and DeepSpeed's JSON
  kNemo,               // NeMo Megatron-Bridge: YAML overrides of a recipe
  kTorchTitan,         // torchtitan (2026): command-line options
  kNanotron,           // Hugging Face's nanotron: its YAML
  kAccelerate,         // Hugging Face's accelerate: FSDP or data parallelism for the Trainer
  kDeepSpeed,          // Hugging Face's Trainer with DeepSpeed's ZeRO: arguments and JSON
  kSlurm,              // Slurm job script that embeds another launcher's files
  kKubernetes,         // Kubernetes JobSet that embeds another launcher's files
};
template <>
inline constexpr auto kEnumNames<LaunchStack> = words<9>(
    "megatron-lm megatron-deepspeed nemo torchtitan nanotron accelerate deepspeed slurm "
    "kubernetes");
constexpr bool is_job(LaunchStack stack) {
  return stack == LaunchStack::kSlurm || stack == LaunchStack::kKubernetes;
}
inline constexpr int kLaunchStackCount = static_cast<int>(LaunchStack::kKubernetes) + 1;

// Returns the launcher whose files start the plans of the stack with this name: that of `launcher`,
// or for kNone the one whose framework runs() the name. Nothing if there is none.
std::optional<LaunchStack> launch_stack_of(Launcher launcher, const std::string& stack);

}  // namespace tpsim
