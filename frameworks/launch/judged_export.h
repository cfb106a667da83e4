// Checks exported files with the framework's own argument parser and validation, which
// python/tpsim_recipes runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frameworks/launch/export_check.h"

namespace tpsim {

struct Judgement {
  bool is_accepted = false;
  std::string message;               // the framework's error, if it refuses the files
  std::string where;                 // location of that error in the checkout: "arguments.py:1166"
  std::vector<std::string> stubs;    // modules that could not be loaded and were replaced by stubs
  std::vector<std::string> notes;    // sentences about checks that did not run
  std::string not_isolated;          // reason why the code ran without isolation; empty: isolated
  std::vector<LostSetting> changed;  // settings that the framework changes, with both values
  std::int64_t held = 0;  // number of settings that the framework resolves to the stated value
};

// Runs the check. Error for stacks that tpsim_recipes cannot check. `model` supplies fields that
// the framework's recipe or registry defines and the files omit. `gpu`: name of the GPU's profile,
// which frameworks find as the device. `checkouts` are the source folders of the framework and of
// the packages that it imports.
Result<Judgement> judged_export(LaunchStack stack, const std::vector<LaunchFile>& files,
                                const ModelSpec& model, std::string_view gpu,
                                const std::vector<std::string>& checkouts);

}  // namespace tpsim
