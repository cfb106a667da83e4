// A training log or profiler trace, compared with the prediction of its plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/answers/import_answer.h"
#include "app/answers/log_causes.h"
#include "app/answers/log_text.h"
#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "evidence/logs/kernel_trace.h"
#include "evidence/logs/log_check.h"

namespace tpsim::app {

struct CheckLogRequest {
  ScenarioRequest scenario = {};  // with the plan file of the run
  OpenedLog log = {};
};

// Measured and predicted times of a kind of kernels, per step.
struct KernelRow {
  std::string what;
  Seconds measured, predicted;
  CauseClass explained_by;  // class of changes to try if `measured` is larger
};

// Compares measured kernel times with the prediction, by kind of work.
std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& predicted);

struct CheckedLog {
  PlanFile file;
  NamedScenario named;
  Prediction predicted;
  LogCheck check;
  std::vector<LikelyCause> likely;     // possible explanations of a gap; empty without one
  std::optional<KernelTimes> kernels;  // of a profiler trace
  std::vector<KernelRow> kernel_rows;  // of a profiler trace; the sum exceeds the step by overlaps
};
Result<CheckedLog> check_log_answer(const CheckLogRequest& request);

// Returns the plan that the arguments printed in the log describe; nothing if it prints none.
// `request` has the stated values.
Result<std::optional<ImportAnswer>> arguments_in_log(const ImportRequest& request,
                                                     const OpenedLog& log);

}  // namespace tpsim::app
