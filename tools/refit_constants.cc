// Refits the constants of docs/accuracy.md to their calibration rows, starting from the recorded
// values. Reports how much predictions depend on these rows: each model and each layout is excluded
// from a fit and then predicted by it.
// Usage: tpsim_refit_constants DATA_FOLDER [TABLE]
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "evidence/runs/run_table.h"
#include "evidence/runs/validation.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

struct Row {
  PublishedRun run;
  RunSetup setup;
  double measured = 0;
  bool calibration = false;
};

// A constant, with a function that multiplies its value in a scenario.
struct Constant {
  const char* name;
  void (*scale)(Scenario&, double factor);
};

// Constants that are fitted together to the calibration rows of one table.
struct Fit {
  const char* table;
  const char* only;  // rows whose regime or GPU starts with this
  std::vector<Constant> constants;
};

const std::vector<Constant> kHostOfDeepSpeed = {
    {"per_op", [](Scenario& s, double f) { s.stack.host.per_op *= f; }},
    {"per_collective", [](Scenario& s, double f) { s.stack.host.per_collective *= f; }},
    {"per_micro_batch", [](Scenario& s, double f) { s.stack.host.per_micro_batch *= f; }},
    {"per_step", [](Scenario& s, double f) { s.stack.host.per_step *= f; }},
    {"rank_jitter", [](Scenario& s, double f) { s.stack.rank_jitter *= f; }}};
const Constant kEagerTraffic = {"eager_traffic",
                                [](Scenario& s, double f) { s.stack.eager_traffic *= f; }};
const Constant kFlashSpeed = {"flash_speed",
                              [](Scenario& s, double f) { s.stack.flash_speed *= f; }};
const Constant kBlockBackward = {
    "per_block_backward", [](Scenario& s, double f) { s.stack.host.per_block_backward *= f; }};

const std::vector<Fit> kFits = {
    {"bloom_jean_zay",
     "numa-fixed",
     {{"blocking_op", [](Scenario& s, double f) { s.stack.host.blocking_op *= f; }},
      {"blocking_collective", [](Scenario& s, double f) { s.stack.host.blocking_collective *= f; }},
      kBlockBackward,
      kEagerTraffic,
      {"rank_jitter", [](Scenario& s, double f) { s.stack.rank_jitter *= f; }},
      {"inter_node.efficiency",
       [](Scenario& s, double f) { s.cluster.inter_node.efficiency *= f; }},
      {"unaligned_batched_rate",
       [](Scenario& s, double f) { s.profile.model.matmul.unaligned_batched_rate *= f; }}}},
    {"vtrain_a100_single", "", kHostOfDeepSpeed},
    {"vtrain_a100_multi",
     "",
     {{"nic_collision_efficiency",
       [](Scenario& s, double f) { s.cluster.nic_collision_efficiency *= f; }}}},
    {"dgxc_h100",
     "",
     {{"tensor_overlap", [](Scenario& s, double f) { s.stack.tp_overlap *= f; }},
      {"rank_jitter", [](Scenario& s, double f) { s.stack.rank_jitter *= f; }}}},
    {"mosaic_fsdp", "A100", {kFlashSpeed, kEagerTraffic}},
    {"mosaic_fsdp", "H100", {kFlashSpeed}},
    {"simumax_b200_a100pcie",
     "B200",
     {{"per_block",
       [](Scenario& s, double f) {
         s.stack.host.per_block_forward *= f;
         s.stack.host.per_block_backward *= f;
       }},
      {"sustained_clock", [](Scenario& s, double f) { s.profile.model.sustained_clock *= f; }}}},
};

using Factors = std::vector<double>;
using Chosen = std::function<bool(const Row&)>;

// Returns log(predicted / measured); 0 for a row that cannot be predicted.
double log_error(const Row& row, const Fit& fit, const Factors& factors) {
  Scenario scenario = row.setup.scenario;
  for (std::size_t i = 0; i < factors.size(); ++i) fit.constants[i].scale(scenario, factors[i]);
  const Result<Prediction> predicted = simulate(scenario, row.setup.plan);
  return predicted.ok() ? std::log(predicted->step.value() / row.measured) : 0.0;
}

struct MeanError {
  double share = 0;
  std::int64_t rows = 0;
};

MeanError mean_error(const std::vector<Row>& rows, const Fit& fit, const Factors& factors,
                     const Chosen& chosen) {
  MeanError mean;
  for (const Row& row : rows) {
    if (!chosen(row)) continue;
    mean.share += std::fabs(log_error(row, fit, factors));
    ++mean.rows;
  }
  if (mean.rows > 0) mean.share /= static_cast<double>(mean.rows);
  return mean;
}

// Coordinate descent: multiplies one constant at a time by decreasing factors, until no change
// reduces the error.
Factors refitted(const std::vector<Row>& rows, const Fit& fit, const Chosen& chosen) {
  Factors factors(fit.constants.size(), 1.0);
  double best = mean_error(rows, fit, factors, chosen).share;
  for (double step = 1.25; step > 1.02;) {
    bool better = false;
    for (double& factor : factors) {
      for (const double change : {step, 1 / step}) {
        const double before = factor;
        factor *= change;
        const double error = mean_error(rows, fit, factors, chosen).share;
        if (error < best - 1e-6) {
          best = error;
          better = true;
        } else {
          factor = before;
        }
      }
    }
    if (!better) step = std::sqrt(step);
  }
  return factors;
}

std::string factors_text(const Fit& fit, const Factors& factors) {
  std::string text;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    text += fmt::format(" {} x {:.2f}", fit.constants[i].name, factors[i]);
  }
  return text;
}

std::string model_of_row(const Row& row) {
  return fmt::format("hidden {}", row.setup.scenario.model.hidden);
}

std::string layout_of_row(const Row& row) {
  const ParallelDegrees& d = row.setup.plan.degrees;
  return fmt::format("tp {} pp {}", d.tp, d.pp);
}

// Cross-validation: excludes each family of calibration rows once from the fit, and prints its
// error.
void leave_out(const std::vector<Row>& rows, const Fit& fit,
               const std::function<std::string(const Row&)>& family_of) {
  std::set<std::string> seen;
  for (const Row& row : rows) {
    if (row.calibration) seen.insert(family_of(row));
  }
  if (seen.size() < 2) return;
  for (const std::string& family : seen) {
    const auto is_in = [&](const Row& row) { return family_of(row) == family; };
    const Factors without =
        refitted(rows, fit, [&](const Row& row) { return row.calibration && !is_in(row); });
    const MeanError out = mean_error(rows, fit, without, is_in);
    const MeanError as_recorded = mean_error(rows, fit, {}, is_in);
    fmt::print("  without {:<12} its {:3} rows {:5.2f} % (recorded {:5.2f} %);{}\n", family,
               out.rows, 100 * out.share, 100 * as_recorded.share, factors_text(fit, without));
  }
}

Result<std::vector<Row>> rows_of(RunLoader& loader, const std::filesystem::path& data,
                                 const Fit& fit) {
  TPSIM_TRY(const std::vector<PublishedRun> runs,
            read_run_table(data / "published_runs" / (std::string(fit.table) + ".csv")));
  std::vector<Row> rows;
  for (const PublishedRun& run : runs) {
    const bool meant = run.regime.starts_with(fit.only) || run.gpu.starts_with(fit.only);
    const Result<Seconds> measured = measured_step(run);
    if (!meant || run.outcome != "ok" || !measured.ok()) continue;
    const RunOutcome outcome = predict_run(loader, run);
    if (!outcome.predicted || !outcome.skipped_because.empty()) continue;
    TPSIM_TRY(RunSetup setup, loader.setup(run));
    rows.push_back({run, std::move(setup), measured->value(), outcome.calibration});
  }
  return rows;
}

Status report(RunLoader& loader, const std::filesystem::path& data, const Fit& fit) {
  TPSIM_TRY(const std::vector<Row> rows, rows_of(loader, data, fit));
  const auto fitted = [](const Row& row) { return row.calibration; };
  const auto test = [](const Row& row) { return !row.calibration; };
  const Factors again = refitted(rows, fit, fitted);
  fmt::print("{} {}: {} calibration rows\n", fit.table, fit.only,
             mean_error(rows, fit, {}, fitted).rows);
  fmt::print("  recorded     calibration {:5.2f} %, test {:5.2f} %\n",
             100 * mean_error(rows, fit, {}, fitted).share,
             100 * mean_error(rows, fit, {}, test).share);
  fmt::print("  fitted again calibration {:5.2f} %, test {:5.2f} %;{}\n",
             100 * mean_error(rows, fit, again, fitted).share,
             100 * mean_error(rows, fit, again, test).share, factors_text(fit, again));
  leave_out(rows, fit, model_of_row);
  leave_out(rows, fit, layout_of_row);
  return Ok{};
}

Status report_all(const std::filesystem::path& data, const std::string& table) {
  TPSIM_TRY(std::vector<RunEnvironment> environments,
            read_run_environments(data / "published_runs/environments.json"));
  RunLoader loader(Catalogue(data), std::move(environments), {});
  for (const Fit& fit : kFits) {
    if (table.empty() || table == fit.table) TPSIM_TRY_STATUS(report(loader, data, fit));
  }
  return Ok{};
}

}  // namespace
}  // namespace tpsim

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: tpsim_refit_constants DATA_FOLDER [TABLE]\n");
    return 2;
  }
  const tpsim::Status done = tpsim::report_all(argv[1], argc > 2 ? argv[2] : "");
  if (done.ok()) return 0;
  fmt::print(stderr, "{}\n", tpsim::to_string(done.error()));
  return 2;
}
