// The Python module by which a launch script of torchtitan states what no option does.
//
// torchtitan's command line changes the values of a configuration, but not its modules. The module
// changes the configuration that the arguments --module and --config name. Its own --config lists
// the changes: "mxfp8_hybridep".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "frameworks/launch/launch_options.h"

namespace tpsim {

// Returns the changes that the plan needs, joined by underscores. Empty if options state the plan.
// Error if torchtitan does not have the combination.
Result<std::string> plan_changes(const PlanFile& file);

// Returns the lines of a script that write the module to a folder of PYTHONPATH.
std::string plan_module_lines();
// Returns the text of the module in a script; empty if the script has none.
std::string_view plan_module_in(std::string_view script);

// Adds --module and --config of the module.
void add_plan_module(const std::string& changes, LaunchOptions& out);
// Removes --module and --config. Replaces the changes of the module by the parts and by the options
// of former versions that state them.
void take_plan_module(std::vector<LaunchOption>& options, PartValues& parts);

}  // namespace tpsim
