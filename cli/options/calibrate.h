// What `calibrate` reads, finds and writes.
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

// Steps that were measured, and whose constants they may move.
struct CalibrationInputs {
  std::vector<MeasuredStep> steps;
  std::vector<std::string> skipped;  // "row: why", of what cannot be priced
  StackSpec stack;                   // as they are in their files, not as a row changes them
  ClusterSpec cluster;
  std::string stack_path, cluster_path;  // names of the catalogue, or files
  std::string of;                        // "54 rows of runs.csv"
};

// Whether tables of runs are given; a table of metrics has a plan behind it, as a log.
bool are_tables(const Arguments& arguments);
// From tables of runs or training logs: the positional and what follows it. `first` is the log at
// the positional, and nothing for tables.
Result<CalibrationInputs> calibration_inputs(const Arguments& arguments,
                                             const std::optional<OpenedLog>& first);

struct CalibrationAnswer {
  CalibrationInputs inputs;
  Calibration found;
  bool moves_stack = false, moves_cluster = false;
};

// The files with what was found, its provenance and its spread.
StackSpec calibrated_stack(const CalibrationAnswer& answer);
ClusterSpec calibrated_cluster(const CalibrationAnswer& answer);

std::string calibration_text(const Terminal& terminal, const Arguments& arguments,
                             const CalibrationAnswer& answer);
// Of output of nccl-tests.
Status calibrate_link(const Arguments& arguments, const OpenedLog& first, const Terminal& terminal);

// "a.log, b.log": without their folders.
std::string file_names(const std::vector<std::string>& files);

// As the files say who wrote them, and when; and as they hold numbers.
std::string calibrated_name(const std::string& name);
double rounded(double value);  // to four digits

// {"version": "tpsim-calibrate-report/1", ...}
JsonValue calibration_json(const CalibrationAnswer& answer);

}  // namespace tpsim::cli
