// Constants of a stack and a cluster, fitted to measurements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/answers/log_answer.h"
#include "app/answers/run_answers.h"
#include "core/base/result.h"
#include "core/machine/cluster_spec.h"
#include "core/software/stack_spec.h"
#include "evidence/calibration/calibration.h"
#include "evidence/calibration/nccl_tests.h"

namespace tpsim::app {

// The files to fit are those that the caller saves. Without any, both are fitted.
struct CalibrateRequest {
  // Tables of runs; or training logs, each of which may be followed by its plan file; or output of
  // nccl-tests.
  std::vector<std::string> measured = {};
  std::string plan_file = {};  // plan of logs that no plan file follows
  bool saves_stack = false, saves_cluster = false;
  RunOverrides overrides = {};    // names of the stack and cluster to fit, for tables of runs
  ScenarioRequest scenario = {};  // stated values for logs
  ImportRequest import = {};      // stated values for logs that print their arguments
  int threads = 1;
  Progress progress = {};

  bool fits_stack() const { return saves_stack || !saves_cluster; }
  bool fits_cluster() const { return saves_cluster || !saves_stack; }
};
// Whether the files are tables of runs. Tables of training metrics are logs, which need a plan.
bool are_tables(const CalibrateRequest& request);

// Measured steps, and the stack and cluster to calibrate.
struct CalibrationInputs {
  std::vector<MeasuredStep> steps;
  std::vector<std::string> skipped;  // rows that cannot be predicted: "row: reason"
  StackSpec stack;                   // as in its file, without changes by a row
  ClusterSpec cluster;
  std::string stack_path, cluster_path;  // catalogue names or file paths
  std::string of;                        // description: "54 rows of runs.csv"
};
// `first` is the opened first log, since standard input cannot be read twice; nothing for tables.
Result<CalibrationInputs> calibration_inputs(const CalibrateRequest& request,
                                             const std::optional<OpenedLog>& first);

// Returns the names without folders: "a.log, b.log".
std::string file_names(const std::vector<std::string>& files);

struct CalibrationAnswer {
  CalibrationInputs inputs;
  Calibration found;
  bool moves_stack = false, moves_cluster = false;
};
// Fits only the constants of the files that are saved.
Result<CalibrationAnswer> calibrate_answer(const CalibrateRequest& request,
                                           const std::optional<OpenedLog>& first);

// Return the contents of the files with the fitted values, their provenance and their spread.
StackSpec calibrated_stack(const CalibrationAnswer& answer);
ClusterSpec calibrated_cluster(const CalibrationAnswer& answer);

// Bandwidth efficiency and latency of a cluster's links.
struct LinkAnswer {
  ClusterSpec cluster;
  FittedLink link;
  std::int64_t messages = 0;
  std::string files;

  std::string key() const { return link.between_nodes ? "inter_node" : "intra_node"; }
};
// Fits the links of a cluster to output of nccl-tests.
Result<LinkAnswer> link_answer(const CalibrateRequest& request, const OpenedLog& first);
ClusterSpec calibrated_cluster(const LinkAnswer& answer);

}  // namespace tpsim::app
