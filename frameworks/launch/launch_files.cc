#include "frameworks/launch/launch_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/software/part_rules.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/named_model.h"

namespace tpsim {
using Files = std::vector<LaunchFile>;

LaunchFile shell_file(LaunchStack stack, const PlanFile& file, const LaunchSize& size,
                      const LaunchOptions& options, const std::string& environment) {
  return {framework_of(stack).files().front(), std::string(kShellLine) + model_line(file.model) +
                                                   environment + export_lines(file.parts) +
                                                   shell_text(size, options)};
}

Status check_launch_rules(LaunchStack stack, const PlanFile& file, const StackSpec& software) {
  const Launcher launcher = framework_of(stack).launcher();
  const LaunchRule* rule = broken_rule(launcher, file.model, file.plan);
  if (rule == nullptr) {
    rule = broken_file_rule(launcher, with_parts(software, file.parts), file.model, file.plan,
                            file.profile);
  }
  return rule == nullptr ? Status(Ok{}) : cannot_express(stack, rule->what, rule->why);
}

Error cannot_express(LaunchStack stack, std::string what, std::string why) {
  return bad_input(fmt::format("{} export does not support {}", name_of(stack), what), "--to",
                   std::move(why));
}

std::optional<LaunchStack> launcher_in(LaunchStack stack, const PlanFile& file, Launcher launcher) {
  if (!is_job(stack)) return stack;
  return launch_stack_of(launcher, file.stack);
}

std::vector<std::string> launch_file_names(LaunchStack stack) {
  return framework_of(stack).files();
}

LaunchHosts launch_hosts(const ClusterSpec& cluster, std::int64_t gpus) {
  LaunchHosts hosts(host_size(cluster));
  hosts.domain_size = cluster.gpus_per_node;
  hosts.domain_gpus = std::min(gpus, node_size(cluster, gpus));
  hosts.nics = cluster.nics_per_node * hosts.gpus / cluster.gpus_per_node;
  return hosts;
}

Result<Files> export_plan(LaunchStack stack, const PlanFile& file, const LaunchHosts& hosts,
                          const StackSpec& software) {
  // Write the environment variable of expandable segments also if only the stack, and not the plan,
  // enables them, because launchers do not have an option for the allocator.
  PlanFile whole = file;
  if (software.parts.expandable_segments)
    whole.parts.try_emplace(StackPart::kExpandableSegments, 1);
  TPSIM_TRY_STATUS(validate(file.plan, file.model));
  const std::int64_t gpus = gpu_count(file.plan);
  if (gpus > hosts.gpus && gpus % hosts.gpus != 0) {
    return bad_input(
        fmt::format("{} GPUs are not a multiple of the {} GPUs per node", gpus, hosts.gpus));
  }
  LaunchSize size = launch_size(gpus, hosts.gpus);
  size.domain_gpus = hosts.domain_gpus;
  size.domain_size = hosts.domain_size;
  size.nics = hosts.nics;
  const StackSpec stated = with_parts(software, whole.parts);
  return framework_of(stack).write(whole, size, stated);
}

LaunchStack stack_of_text(std::string_view text) {
  for (const Framework* one : frameworks()) {
    if (one->detects_script(text)) return one->stack();
  }
  return LaunchStack::kMegatronLm;
}

}  // namespace tpsim
