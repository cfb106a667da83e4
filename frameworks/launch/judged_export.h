// Lets a framework's own argument code judge exported files, under python/tpsim_recipes.
#pragma once

#include <string>
#include <vector>

#include "frameworks/launch/export_check.h"

namespace tpsim {

struct Judgement {
  bool is_accepted = false;
  std::string message;               // the framework's own, where it refuses the files
  std::string where;                 // "arguments.py:1166" of the checkout
  std::vector<std::string> stubs;    // modules of the checkout that could not be loaded
  std::string not_isolated;          // why the code ran without isolation; empty: it was isolated
  std::vector<LostSetting> changed;  // settings that the framework resolves to another value
  std::int64_t held = 0;             // settings of the files that it resolves as they say
};

// An error for stacks without a judge. `checkouts`: the framework's sources and what they import.
Result<Judgement> judged_export(LaunchStack stack, const std::vector<LaunchFile>& files,
                                const std::vector<std::string>& checkouts);

}  // namespace tpsim
