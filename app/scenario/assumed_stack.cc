#include "app/scenario/assumed_stack.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "core/software/launch_rules.h"

namespace tpsim::app {
namespace {

constexpr std::array<std::string_view, 5> kUsualStacks = {
    "nemo", "megatron-deepspeed", "torchtitan", "pytorch-fsdp", "deepspeed-zero3"};

// Whether the stack replicates the model on every GPU.
bool shards_nothing(const StackSpec& stack) {
  return stack.choices.only[Setting::kZero] == std::vector<std::int64_t>{0};
}

}  // namespace

const LaunchRule* reason_against(Launcher launcher, const ModelSpec& model) {
  return broken_rule(launcher, RuleScope::kModel, model, Plan{});
}

Result<std::vector<StackSpec>> assumable_stacks(const Catalogue& catalogue,
                                                const Scenario& scenario) {
  std::vector<StackSpec> stacks;
  for (const std::string_view name : kUsualStacks) {
    TPSIM_TRY(StackSpec stack, catalogue.load_stack(name));
    if (supports_gpu(stack.launcher, scenario.profile.device.name) &&
        reason_against(stack.launcher, scenario.model) == nullptr) {
      stacks.push_back(std::move(stack));
    }
  }
  return stacks;
}

Status assume_stack(const ScenarioRequest& request, const Catalogue& catalogue,
                    NamedScenario& named) {
  const Scenario& scenario = named.scenario;
  named.stack = scenario.cluster.stack;
  if (request.ignore_stack_limits) return Ok{};
  const Result<StackSpec> usual = catalogue.load_stack(named.stack);
  if (!usual.ok()) return Ok{};  // loading the stack reports the error later
  const LaunchRule* const rule = reason_against(usual->launcher, scenario.model);
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t gpus = request.gpus > 0 ? request.gpus : gpus_of(cluster);
  const bool replicates = gpus > 1 && shards_nothing(*usual);
  if (rule == nullptr && !replicates) return Ok{};
  TPSIM_TRY(const std::vector<StackSpec> others, assumable_stacks(catalogue, scenario));
  for (const StackSpec& stack : others) {
    if (replicates && stack.launcher != usual->launcher) continue;  // PyTorch's own FSDP
    named.stack = stack.name;
    named.stack_reason =
        fmt::format("{}, the usual stack of {}, cannot {}", usual->name, cluster.name,
                    rule == nullptr ? "shard" : fmt::format("run {}", rule->what));
    return Ok{};
  }
  return Ok{};
}

}  // namespace tpsim::app
