#include "frameworks/launch/launcher.h"

#include <fmt/format.h>

#include <utility>

#include "core/software/part_rules.h"

namespace tpsim {

Launcher launcher_of(LaunchStack stack) {
  switch (stack) {
    case LaunchStack::kMegatronLm: return Launcher::kMegatron;
    case LaunchStack::kMegatronDeepSpeed: return Launcher::kMegatronDeepSpeed;
    case LaunchStack::kNemo: return Launcher::kNemo;
    case LaunchStack::kTorchTitan: return Launcher::kTorchTitan;
    case LaunchStack::kNanotron: return Launcher::kNanotron;
    case LaunchStack::kAccelerate: return Launcher::kAccelerate;
    case LaunchStack::kDeepSpeed: return Launcher::kDeepSpeed;
    case LaunchStack::kSlurm:
    case LaunchStack::kKubernetes: return Launcher::kNone;
  }
  return Launcher::kNone;
}

Status check_launch_rules(LaunchStack stack, const PlanFile& file, const StackSpec& software) {
  const LaunchRule* rule = broken_rule(launcher_of(stack), file.model, file.plan);
  const PartRule* part_rule = broken_file_rule(launcher_of(stack), with_parts(software, file.parts),
                                               file.model, file.plan, file.profile);
  if (rule == nullptr && part_rule != nullptr) {
    return cannot_express(stack, part_rule->what, part_rule->why);
  }
  return rule == nullptr ? Status(Ok{}) : cannot_express(stack, rule->what, rule->why);
}

Error cannot_express(LaunchStack stack, std::string what, std::string why) {
  return bad_input(fmt::format("{} export does not support {}", name_of(stack), what), "--to",
                   std::move(why));
}

}  // namespace tpsim
