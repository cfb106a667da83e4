// Compares predictions with published runs, and summarizes the errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/runs/run_setup.h"

namespace tpsim {

struct RunOutcome {
  std::string id;
  std::string outcome;               // ok or oom, as measured
  std::string cluster, stack;        // used for the prediction; empty if there is none
  std::string parts;                 // software parts that the row states
  std::vector<std::string> assumed;  // see RunSetup
  bool calibration = false;
  std::string skipped_because;  // reason why the row does not count; empty if it counts
  // Key of rows that are alternatives for a planner: same model, GPUs, batch and regime.
  std::string group;
  std::optional<double> measured_step_s, measured_memory_gib;
  bool predicted = false;
  double step_s = 0, low_s = 0, high_s = 0;
  // Baseline prediction: model and recompute FLOPs at half of the GPU's dense peak for the row's
  // dtype.
  double half_peak_s = 0;
  double memory_gib = 0;  // as the row defines its memory column
  double p_oom = 0;
  // The row does not state recompute: p_oom is the mean over no and full recompute.
  bool has_open_recompute = false;
  // Stated parts and settings that change neither time nor memory of this run: "compile=on".
  std::vector<std::string> without_effect;

  std::optional<double> error() const;            // predicted / measured - 1
  std::optional<double> half_peak_error() const;  // the same for half_peak_s
  std::optional<double> memory_error() const;     // predicted / measured memory - 1
};

// Errors are fractions, not percent. Time errors count rows with a measured step. 0 if there are no
// rows.
struct ValidationSummary {
  std::int64_t n = 0;
  double half_peak_mape = 0;
  double mape = 0, median_ape = 0, p95_ape = 0, max_ape = 0, bias = 0;
  double kendall_tau = 0;  // rank correlation in groups, over pairs with different times
  std::int64_t pairs = 0;
  // Root mean square over the same pairs of the difference of log(predicted / measured). This is
  // the source of kPairSpread.
  double pair_spread = 0;
  // Relative excess of the measured time of the row predicted as fastest over the fastest measured
  // time; mean over groups of at least 3 rows.
  double top1_regret = 0;
  std::int64_t regret_groups = 0;
  double interval_coverage = 0;
  std::int64_t memory_n = 0;
  double memory_mape = 0, memory_max_ape = 0;
  std::int64_t oom_total = 0, oom_caught = 0, false_oom = 0;
};

RunOutcome predict_run(RunLoader& loader, const PublishedRun& stated);

ValidationSummary summarize(const std::vector<RunOutcome>& outcomes);

// Returns the predicted rows that count, largest error first; at most `most`.
std::vector<const RunOutcome*> worst_runs(const std::vector<RunOutcome>& outcomes,
                                          std::size_t most);
// Returns the reasons why rows do not count, with their numbers of rows, by first occurrence.
std::vector<std::pair<std::string, std::int64_t>> skipped_runs(
    const std::vector<RunOutcome>& outcomes);

}  // namespace tpsim
