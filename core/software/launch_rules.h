// Rules that a plan must satisfy so that a training program can run it, in addition to the setting
// values that a stack file accepts. Search, prediction, explanation, export and import share the
// table.
//
// Rules follow the argument checks of the programs; `why` states the source.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"

namespace tpsim {

// The program that launches a stack's plans.
enum class Launcher : std::uint8_t {
  kNone,               // no launch files, prediction only
  kMegatron,           // Megatron-LM's pretrain_gpt.py, Megatron-Core
  kMegatronDeepSpeed,  // BigScience's fork
  kNemo,               // NeMo and Megatron-Bridge
  kTorchTitan,
  kNanotron,
  kAccelerate,  // Hugging Face Trainer with FSDP or plain data parallelism
  kDeepSpeed,   // Hugging Face Trainer with DeepSpeed's ZeRO
};
template <>
inline constexpr auto kEnumNames<Launcher> =
    std::to_array<std::string_view>({"none", "megatron-lm", "megatron-deepspeed", "nemo",
                                     "torchtitan", "nanotron", "accelerate", "deepspeed"});

// Inputs on which a rule depends. A search evaluates a rule again only if its inputs change.
enum class RuleScope : std::uint8_t {
  kFiles,   // model and plan; limits of the files that tpsim writes, not of the program. Only
            // exports apply the rule
  kModel,   // model only
  kPlan,    // model and all settings except the split into stages
  kStages,  // model and Plan::stage_layers
};

// Whether the launcher's program runs on GPUs of a profile with this device name.
bool supports_gpu(Launcher launcher, std::string_view device);

struct LaunchRule {
  std::uint8_t launchers;  // bit (1 << Launcher) for each launcher with this rule
  RuleScope scope;
  bool (*is_broken)(const ModelSpec&, const Plan&);
  const char* what;  // the feature that the program cannot run
  const char* why;   // the reason, and an alternative if there is one
};
// Returns the rules of one launcher and scope, in the order of the table.
std::vector<const LaunchRule*> rules_of(Launcher launcher, RuleScope scope);
// Returns the rule as a message, "the stack cannot run RMSNorm". The text is never freed.
const char* refusal_of(const LaunchRule& rule);

// Returns the first rule of the launcher that the plan violates; null if there is none.
const LaunchRule* broken_rule(Launcher launcher, const ModelSpec& model, const Plan& plan);
const LaunchRule* broken_rule(Launcher launcher, RuleScope scope, const ModelSpec& model,
                              const Plan& plan);

// torchtitan: returns by how many blocks the first and last chunk are smaller than the others, 0 or
// 1. Returns -1 for a split that torchtitan cannot make.
std::int64_t missing_at_ends(const ModelSpec& model, const Plan& plan);
// Whether torchtitan would train a bf16 plan in fp32. Without sharding, it uses autocast only if
// data parallelism is the only parallelism; with tp or pp, nothing casts to bf16.
bool titan_casts_nothing(const Plan& plan);
// DeepSpeed: returns the blocks per stage of an equal split. With `counts_embeddings`, embedding
// and head count as one block each. Empty if the number does not divide evenly.
std::vector<std::int64_t> equal_stage_layers(std::int64_t layers, std::int64_t stages,
                                             bool counts_embeddings);

}  // namespace tpsim
