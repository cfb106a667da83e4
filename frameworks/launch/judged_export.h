// Checks exported files with the framework's own argument code, run under python/tpsim_recipes.
#pragma once

#include <string>
#include <vector>

#include "frameworks/launch/export_check.h"

namespace tpsim {

struct Judgement {
  bool is_accepted = false;
  std::string message;               // of the framework, if it refuses the files
  std::string where;                 // "arguments.py:1166" of the checkout
  std::vector<std::string> stubs;    // modules of the checkout that could not be loaded
  std::string not_isolated;          // reason why the code ran without isolation; empty: isolated
  std::vector<LostSetting> changed;  // settings that the framework resolves to another value
  std::int64_t held = 0;             // settings that the framework resolves to the stated value
};

// Returns an error for stacks without such a check. `checkouts`: folders of the framework and its
// imports.
Result<Judgement> judged_export(LaunchStack stack, const std::vector<LaunchFile>& files,
                                const std::vector<std::string>& checkouts);

}  // namespace tpsim
