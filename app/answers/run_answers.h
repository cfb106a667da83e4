// Rows of run tables, predicted.
#pragma once

#include <string>
#include <vector>

#include "app/scenario/plan_request.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "evidence/runs/run_table.h"
#include "evidence/runs/validation.h"

namespace tpsim::app {

struct RunsRequest {
  std::string table = {};       // a file or a shipped table
  std::string row = {};         // id of the row to explain
  RunOverrides overrides = {};  // replace cluster, stack, profile and network of the rows
  Progress progress = {};
};

// Returns a loader for rows of run tables, with the shipped environments.
Result<RunLoader> run_loader(const RunOverrides& overrides);

// Predicts every row of the table.
Result<std::vector<RunOutcome>> validate_answer(const RunsRequest& request);

// Returns the rows on which constants were fitted, or all others.
std::vector<RunOutcome> rows_of(const std::vector<RunOutcome>& outcomes, bool calibration);

// A row of a run table with its scenario and prediction.
struct ExplainedRow {
  PublishedRun run;
  RunOutcome outcome;
  NamedScenario named;
  PlannedRun planned;
};
// Error if the row cannot be predicted.
Result<ExplainedRow> explained_row(const RunsRequest& request);

}  // namespace tpsim::app
