// Rows of a table of measured runs, as the command line names them.
#pragma once

#include <filesystem>

#include "cli/inputs.h"
#include "cli/options.h"
#include "core/result.h"
#include "core/run_table.h"
#include "sim/validation.h"

namespace tpsim::cli {

// Over the shipped environments; --cluster, --stack and --profile come before theirs.
Result<RunLoader> run_loader(const Arguments& arguments);

// The table that --runs names: a file, or one that ships.
Result<std::filesystem::path> run_table(const Arguments& arguments);

// One row, set up and predicted.
struct ExplainedRow {
  PublishedRun run;
  RunOutcome outcome;
  NamedScenario named;
  PlannedRun planned;
};
// The row --row of the table --runs. An error where it cannot be priced.
Result<ExplainedRow> explained_row(const Arguments& arguments);

}  // namespace tpsim::cli
