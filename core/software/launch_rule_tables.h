// The tables of launch_rules.h, one file per group of programs, and the names that they share.
#pragma once

#include <span>

#include "core/software/launch_rules.h"

namespace tpsim::launch_rule_tables {

constexpr std::uint8_t launcher_bit(Launcher launcher) {
  return static_cast<std::uint8_t>(1 << static_cast<int>(launcher));
}
inline constexpr std::uint8_t kMegatronDeepSpeed = launcher_bit(Launcher::kMegatronDeepSpeed);
inline constexpr std::uint8_t kDeepSpeed = launcher_bit(Launcher::kDeepSpeed);
inline constexpr std::uint8_t kNemo = launcher_bit(Launcher::kNemo);
inline constexpr std::uint8_t kMegatronLm = launcher_bit(Launcher::kMegatron);
inline constexpr std::uint8_t kMegatron = kMegatronLm | kNemo;
inline constexpr std::uint8_t kTitan = launcher_bit(Launcher::kTorchTitan);
inline constexpr std::uint8_t kNano = launcher_bit(Launcher::kNanotron);
inline constexpr std::uint8_t kAccel = launcher_bit(Launcher::kAccelerate);
inline constexpr std::uint8_t kTrainer = kAccel | kDeepSpeed;

inline constexpr auto kFiles = RuleScope::kFiles;
inline constexpr auto kModel = RuleScope::kModel;
inline constexpr auto kPlan = RuleScope::kPlan;
inline constexpr auto kStages = RuleScope::kStages;

using M = const ModelSpec&;
using P = const Plan&;

// Rules of Megatron-LM, NeMo and Megatron-DeepSpeed. Some apply to further programs.
std::span<const LaunchRule> megatron_rules();
// Rules of torchtitan, nanotron, accelerate and DeepSpeed, which train modules of PyTorch.
std::span<const LaunchRule> torch_rules();

}  // namespace tpsim::launch_rule_tables
