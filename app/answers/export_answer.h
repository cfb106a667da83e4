// Launch files of a plan, checked by importing them again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/scenario/fit.h"
#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "frameworks/launch/export_check.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim::app {

struct ExportRequest {
  ScenarioRequest scenario = {};  // with a plan file
  LaunchStack to{};
  bool allow_loss = false;  // write files even if they lose settings of the plan
  AcceptedRisk risk = {};
};

struct ExportAnswer {
  LaunchStack stack{};
  std::vector<LaunchFile> files;  // empty if refused
  // Reason for exit code 3: the plan does not fit, or the files do not reproduce it.
  std::optional<Error> refused;
  std::optional<PlannedRun> run;  // absent with allow_loss if the plan cannot be predicted
  ExportLoss loss;                // valid if `run` is present
  std::string unchecked;          // reason why the plan cannot be predicted
};
Result<ExportAnswer> export_answer(const ExportRequest& request);

// Returns the launcher to recommend for a plan: that of the plan's stack, if its files reproduce
// the plan. Nothing if the export would be refused.
std::optional<LaunchStack> advised_export(const NamedScenario& named, const Plan& plan);

}  // namespace tpsim::app
