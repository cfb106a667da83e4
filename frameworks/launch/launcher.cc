#include "frameworks/launch/launcher.h"

#include <fmt/format.h>

#include <utility>

#include "core/software/part_rules.h"
#include "frameworks/launch/framework.h"

namespace tpsim {

Status check_launch_rules(LaunchStack stack, const PlanFile& file, const StackSpec& software) {
  const Launcher launcher = framework_of(stack).launcher();
  const LaunchRule* rule = broken_rule(launcher, file.model, file.plan);
  const PartRule* part_rule = broken_file_rule(launcher, with_parts(software, file.parts),
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
