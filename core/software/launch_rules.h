// What the launchers of training programs can run, beyond the values of single settings that a
// stack file lists: one table that search, prediction, explanation, export and import ask.
//
// A rule is read from the program's own argument checks; its source stands in `why`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"

namespace tpsim {

// Whose arguments a stack's plans are launched with.
enum class Launcher : std::uint8_t {
  kNone,               // no launch files: its plans are predicted only
  kMegatron,           // Megatron-LM's pretrain_gpt.py, Megatron-Core
  kMegatronDeepSpeed,  // BigScience's
  kNemo,               // NeMo and Megatron-Bridge
  kTorchTitan,
  kNanotron,
  kAccelerate,  // Hugging Face's, for a Trainer: FSDP, or data parallelism alone
};
template <>
inline constexpr auto kEnumNames<Launcher> = std::to_array<std::string_view>(
    {"none", "megatron-lm", "megatron-deepspeed", "nemo", "torchtitan", "nanotron", "accelerate"});

// Of what a rule speaks, so that a search asks it once where it can.
enum class RuleScope : std::uint8_t {
  kFiles,   // launch files do not carry it, whatever the program can
  kModel,   // the plan does not matter
  kPlan,    // all settings but the cut into stages
  kStages,  // Plan::stage_layers
};

struct LaunchRule {
  std::uint8_t launchers;  // bit (1 << Launcher) set: the rule is that one's
  RuleScope scope;
  bool (*is_broken)(const ModelSpec&, const Plan&);
  const char* what;  // that the program cannot run
  const char* why;   // and what to do instead, where something is near
};
// Those of one launcher and scope, in the order of the table.
std::vector<const LaunchRule*> rules_of(Launcher launcher, RuleScope scope);
// "the stack cannot run RMSNorm": one text for each rule, for as long as the program runs.
const char* refusal_of(const LaunchRule& rule);

// The first rule that is broken; null where the launcher runs the plan.
const LaunchRule* broken_rule(Launcher launcher, const ModelSpec& model, const Plan& plan);
const LaunchRule* broken_rule(Launcher launcher, RuleScope scope, const ModelSpec& model,
                              const Plan& plan);

// torchtitan: blocks that the first and the last chunk have less than the others, 0 or 1; -1 for
// stages that it cannot cut.
std::int64_t missing_at_ends(const ModelSpec& model, const Plan& plan);
// DeepSpeed: equal stages by blocks, or by blocks and the two embeddings; empty where they do not
// divide.
std::vector<std::int64_t> equal_stage_layers(std::int64_t layers, std::int64_t stages,
                                             bool counts_embeddings);

}  // namespace tpsim
