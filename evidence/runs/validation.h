// Compares predictions with published runs: row by row, and in summary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/runs/run_setup.h"

namespace tpsim {

struct RunOutcome {
  std::string id;
  std::string outcome;               // ok or oom, as measured
  std::string cluster, stack;        // used in the prediction; empty without prediction
  std::string parts;                 // of the stack, as stated in the row
  std::vector<std::string> assumed;  // see RunSetup
  bool calibration = false;
  std::string skipped_because;  // empty for a row that counts
  // Rows of a group are alternatives for a planner: same model, GPUs, batch, regime.
  std::string group;
  std::optional<double> measured_step_s, measured_memory_gib;
  bool predicted = false;
  double step_s = 0, low_s = 0, high_s = 0;
  // Baseline: the time for the FLOPs of model and recompute at half of the datasheet's dense peak
  // of the row's dtype.
  double half_peak_s = 0;
  double memory_gib = 0;  // as the row's memory column defines it: of a stage, or the fullest stage
  double p_oom = 0;

  std::optional<double> error() const;            // predicted / measured - 1
  std::optional<double> half_peak_error() const;  // likewise
  std::optional<double> memory_error() const;     // likewise
};

// Values are shares, not percent. Times count rows that ran. Without rows a value is 0.
struct ValidationSummary {
  std::int64_t n = 0;
  double half_peak_mape = 0;
  double mape = 0, median_ape = 0, p95_ape = 0, max_ape = 0, bias = 0;
  double kendall_tau = 0;  // within groups, over pairs that differ in both times
  std::int64_t pairs = 0;
  // Root mean square, over those pairs, of the difference of log(predicted / measured). Source of
  // kPairSpread.
  double pair_spread = 0;
  double top1_regret = 0;  // mean over groups of at least three rows
  std::int64_t regret_groups = 0;
  double interval_coverage = 0;
  std::int64_t memory_n = 0;
  double memory_mape = 0, memory_max_ape = 0;
  std::int64_t oom_total = 0, oom_caught = 0, false_oom = 0;
};

RunOutcome predict_run(RunLoader& loader, const PublishedRun& run);
std::vector<RunOutcome> predict_runs(RunLoader& loader, const std::vector<PublishedRun>& runs);

ValidationSummary summarize(const std::vector<RunOutcome>& outcomes);

}  // namespace tpsim
