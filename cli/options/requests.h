// Fills the requests of commands that explain plans, or read or write files, from options.
#pragma once

#include <optional>
#include <vector>

#include "app/answers/calibrate_answer.h"
#include "app/answers/captured_answer.h"
#include "app/answers/compare_answer.h"
#include "app/answers/explain_answers.h"
#include "app/answers/export_answer.h"
#include "app/answers/import_answer.h"
#include "app/answers/run_answers.h"
#include "cli/options/inputs.h"
#include "cli/options/options.h"
#include "core/base/result.h"

namespace tpsim::cli {

Result<ExplainRequest> explain_request(const Arguments& arguments,
                                       const std::optional<PlanFile>& file);
// The file and machine of a captured step.
Result<CapturedRequest> captured_request(const Arguments& arguments, const std::string& path);
// One request for each plan file on the command line.
Result<std::vector<ScenarioRequest>> compare_requests(const Arguments& arguments);
Result<ExportRequest> export_request(const Arguments& arguments, const PlanFile& file);
Result<ImportRequest> import_request(const Arguments& arguments);
Result<RunsRequest> runs_request(const Arguments& arguments);
Result<CalibrateRequest> calibrate_request(const Arguments& arguments);

Result<std::vector<std::string>> checkouts_of(const Arguments& arguments);

// Returns the framework that --to or --from names.
Result<LaunchStack> launch_stack_of(const Arguments& arguments, Opt opt);

}  // namespace tpsim::cli
