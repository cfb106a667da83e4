// Settings of launch files that are not settings of a plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frameworks/launch/facts.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/launch_stack.h"
#include "frameworks/launch/left_settings.h"

namespace tpsim {

// Removes options that are not settings of a plan, and returns the names of the ignored ones. An
// option is ignored if it does not change time or memory of a step, or if it is a property of the
// cluster or the stack. Options that change the plan in a way that tpsim cannot express are added
// to `left`, with the reason.
std::vector<std::string> take_outside(LaunchStack stack, std::vector<LaunchOption>& options,
                                      LeftSettings& left);
// Adds options of a log to `left` if they are switched on and tpsim cannot express them.
void refuse_logged(const std::vector<LaunchOption>& options, LeftSettings& left);
// Whether the setting is ignored: "--lr", or for kNemo "optimizer.lr".
bool is_outside(LaunchStack stack, std::string_view name);
// Whether take_outside() removes the option, because the option is ignored or refused.
bool is_set_aside(LaunchStack stack, const LaunchOption& option);

// Adds the name of an ignored setting to `outside` unless it is already there. A list element adds
// the name of its list.
void add_outside(std::string_view name, std::vector<std::string>& outside);
// Returns the name of the list that contains the element: "datasets" for "datasets.0.path". For
// other settings returns the name itself.
std::string_view list_of(std::string_view name);
// Whether a pattern matches the setting, or the list that contains it.
bool has_pattern(std::string_view name, std::string_view patterns);
bool is_harmless(const LeftOver& row, std::string_view value);
// Whether the table ignores the setting.
bool ignores(const FactTable& table, std::string_view name);

}  // namespace tpsim
