// Rules that a plan must satisfy so that a training program can run it: launch_rules.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/model/model_spec.h"
#include "core/plan/field.h"
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
    words<8>("none megatron-lm megatron-deepspeed nemo torchtitan nanotron accelerate deepspeed");

// Inputs on which a rule depends. A search evaluates a rule again only if its inputs change.
enum class RuleScope : std::uint8_t {
  kFiles,      // model and plan; limits of the files that tpsim writes, not of the program. Only
               // exports apply the rule
  kModel,      // model only
  kPlan,       // model and all settings except the split into stages
  kStages,     // model and Plan::stage_layers
  kParts,      // also software parts (part_rules.h)
  kPartFiles,  // the same, but only exports apply the rule
};
template <>
inline constexpr auto kEnumNames<RuleScope> = words<6>("files model plan stages parts part_files");

// Whether the launcher's program runs on GPUs of a profile with this device name.
bool supports_gpu(Launcher launcher, std::string_view device);

struct StackSpec;

// A number that a condition compares, and the words of its values.
struct RuleQuantity {
  std::int64_t (*of_plan)(const Plan&) = nullptr;
  std::int64_t (*of_stack)(const StackSpec&) = nullptr;
  std::int64_t (*of_all)(const ModelSpec&, const Plan&, const StackSpec*) = nullptr;
  std::int64_t number = 0;  // the value of a quantity that has none of these functions
  const FieldFacts* facts = nullptr;
  bool reads_plan = false;
};
struct RuleCondition {
  enum class Comparison : std::uint8_t { kEqual, kLess, kGreater, kHolds };  // kHolds: of a set

  RuleQuantity left;
  Comparison comparison = Comparison::kEqual;
  bool is_negated = false;
  std::vector<RuleQuantity> values = {};  // one of which the comparison is true for
  std::string patterns = {};              // of ModelSpec::family, instead of a quantity
};

struct LaunchRule {
  std::uint8_t launchers;  // bit (1 << Launcher) for each launcher with this rule
  RuleScope scope;
  std::string gpus = {};  // the rule applies to profiles whose name starts like this
  std::vector<std::vector<RuleCondition>> groups = {};  // one of which holds for refused plans
  std::string what = {};                                // the feature that the program cannot run
  std::string why = {};      // the reason, and an alternative if there is one
  std::string refusal = {};  // "the stack cannot run RMSNorm"

  // `stack` may be null for rules of plans.
  bool is_broken(const ModelSpec& model, const Plan& plan, const StackSpec* stack = nullptr) const;
  // Whether a plan of this model with this software may break the rule: whether the conditions that
  // do not depend on the plan are met.
  bool may_break(const ModelSpec& model, const StackSpec& stack) const;
};
// Returns all rules, in the order of launch_rules.txt.
const std::vector<LaunchRule>& all_launch_rules();
bool is_rule_of(const LaunchRule& rule, Launcher launcher);
// Returns the rules of one launcher and scope, in the order of the table.
const std::vector<const LaunchRule*>& rules_of(Launcher launcher, RuleScope scope);
// Returns LaunchRule::refusal. The text is never freed.
const char* refusal_of(const LaunchRule& rule);

// Returns the first rule of plans that the plan violates; null if there is none.
const LaunchRule* broken_rule(Launcher launcher, const ModelSpec& model, const Plan& plan);
const LaunchRule* broken_rule(Launcher launcher, RuleScope scope, const ModelSpec& model,
                              const Plan& plan);
// Returns a quantity that is neither setting nor part, such as "experts"; nothing if unknown.
std::optional<RuleQuantity> rule_quantity(std::string_view name);

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
