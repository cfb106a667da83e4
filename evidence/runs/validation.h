// Predictions held against published runs: row by row, and as figures over many rows.
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
  std::string cluster, stack;        // that it was predicted for; empty where it was not
  std::string parts;                 // of the stack, as the row states them
  std::vector<std::string> assumed;  // see RunSetup
  bool calibration = false;
  std::string skipped_because;  // empty for a row that counts
  // Rows of one group are choices that a planner would have had: same model, GPUs, batch, regime.
  std::string group;
  std::optional<double> measured_step_s, measured_memory_gib;
  bool predicted = false;
  double step_s = 0, low_s = 0, high_s = 0;
  // What half of the datasheet's dense peak of the row's dtype would take for the model's FLOPs and
  // those of recompute: the guess that a prediction has to beat.
  double half_peak_s = 0;
  double memory_gib = 0;  // what the row's memory column means: of a stage, or the fullest
  double p_oom = 0;

  std::optional<double> error() const;            // predicted over measured, less one
  std::optional<double> half_peak_error() const;  // likewise
  std::optional<double> memory_error() const;     // likewise
};

// Shares, not percent. Times count rows that ran; a figure without rows is zero.
struct ValidationSummary {
  std::int64_t n = 0;
  double half_peak_mape = 0;
  double mape = 0, median_ape = 0, p95_ape = 0, max_ape = 0, bias = 0;
  double kendall_tau = 0;  // within groups, over pairs that differ in both times
  std::int64_t pairs = 0;
  // Of those pairs: by how much the errors of the two differ, root of the mean square of the
  // difference of log(predicted / measured). What kPairSpread is chosen from.
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
