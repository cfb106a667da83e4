// The plan that launch files describe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim::app {

struct ImportRequest {
  std::string path = {};                 // a file, or a folder that `export` wrote
  std::vector<std::string> more = {};    // further configuration files
  std::optional<LaunchStack> from = {};  // framework of the files; absent: detected
  ScenarioRequest scenario = {};         // without a plan file
  ImportInputs inputs = {};  // stated values; model, files and functions are added by the import
};

struct ImportAnswer {
  PlanFile file;
  std::vector<std::string> outside;     // settings of the files that do not affect a plan
  std::vector<std::string> notes = {};  // where the prediction deviates from the files
  PartValues stated = {};               // software that the files state, also if it is the stack's
};
Result<ImportAnswer> import_answer(const ImportRequest& request);

// Imports a plan from the arguments in a log's text. `request.path` is the log.
Result<ImportAnswer> import_log_answer(const ImportRequest& request, const std::string& text);

}  // namespace tpsim::app
