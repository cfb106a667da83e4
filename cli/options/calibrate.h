// Inputs and results of `tpsim calibrate`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/answers.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "evidence/calibration/calibration.h"

namespace tpsim::cli {

// Measured steps, and the stack and cluster to calibrate.
struct CalibrationInputs {
  std::vector<MeasuredStep> steps;
  std::vector<std::string> skipped;  // rows that cannot be predicted: "row: reason"
  StackSpec stack;                   // as in its file, without changes by a row
  ClusterSpec cluster;
  std::string stack_path, cluster_path;  // catalogue names or file paths
  std::string of;                        // description: "54 rows of runs.csv"
};

// Whether the inputs are tables of runs. Tables of training metrics are logs, which need a plan.
bool are_tables(const Arguments& arguments);
// Reads all positional arguments, which are tables of runs or training logs. `first` is the opened
// first log; nothing for tables.
Result<CalibrationInputs> calibration_inputs(const Arguments& arguments,
                                             const std::optional<OpenedLog>& first);

struct CalibrationAnswer {
  CalibrationInputs inputs;
  Calibration found;
  bool moves_stack = false, moves_cluster = false;
};

// Return the contents of the files with the fitted values, their provenance and their spread.
StackSpec calibrated_stack(const CalibrationAnswer& answer);
ClusterSpec calibrated_cluster(const CalibrationAnswer& answer);

std::string calibration_text(const Terminal& terminal, const Arguments& arguments,
                             const CalibrationAnswer& answer);
// Fits the links of a cluster to the output of nccl-tests, and prints and saves the result.
Status calibrate_link(const Arguments& arguments, const OpenedLog& first, const Terminal& terminal);

// Returns the names without folders: "a.log, b.log".
std::string file_names(const std::vector<std::string>& files);

// Returns the name of the calibrated entry: `name` with the suffix "-calibrated".
std::string calibrated_name(const std::string& name);
double rounded(double value);  // rounds to four significant digits

// {"version": "tpsim-calibrate-report/1", ...}
JsonValue calibration_json(const CalibrationAnswer& answer);

}  // namespace tpsim::cli
