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

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/machine/cluster_json.h"
#include "core/machine/device_fields.h"
#include "core/software/stack_json.h"
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

// Constants that are fitted together to the calibration rows of one table.
struct Fit {
  const char* table;
  const char* only;  // rows whose regime or GPU starts with this
  // Keys of stack, cluster, or model of a profile. Keys joined by '+' have one factor.
  std::vector<std::string_view> constants;
};

const std::vector<Fit> kFits = {
    {"bloom_jean_zay",
     "numa-fixed",
     {"host.blocking_op", "host.blocking_collective", "host.per_block_backward", "eager_traffic",
      "rank_jitter", "inter_node.efficiency", "matmul.unaligned_batched_rate"}},
    {"vtrain_a100_single",
     "",
     {"host.per_op", "host.per_collective", "host.per_micro_batch", "host.per_step",
      "rank_jitter"}},
    {"vtrain_a100_multi", "", {"nic_collision_efficiency"}},
    {"dgxc_h100", "", {"tensor_overlap", "rank_jitter"}},
    {"mosaic_fsdp", "A100", {"flash_speed", "eager_traffic"}},
    {"mosaic_fsdp", "H100", {"flash_speed"}},
    {"simumax_b200_a100pcie",
     "B200",
     {"host.per_block_forward+host.per_block_backward", "sustained_clock"}},
};

void scale(Scenario& scenario, std::string_view keys, double factor) {
  while (!keys.empty()) {
    const std::string_view key = cut_off(keys, "+");
    auto number = number_at(scenario.stack, key);
    if (!number) number = number_at(scenario.cluster, key);
    if (!number) number = number_at(scenario.profile.model, key, kModelFields);
    TPSIM_CHECK(number.has_value(), fmt::format("no file has the number {}", key));
    number->set(number->value() * factor);
  }
}

using Factors = std::vector<double>;
using Chosen = std::function<bool(const Row&)>;

// Returns log(predicted / measured); 0 for a row that cannot be predicted.
double log_error(const Row& row, const Fit& fit, const Factors& factors) {
  Scenario scenario = row.setup.scenario;
  for (std::size_t i = 0; i < factors.size(); ++i) scale(scenario, fit.constants[i], factors[i]);
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
    text += fmt::format(" {} x {:.2f}", fit.constants[i], factors[i]);
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
    if (!meant || run.outcome != "ok") continue;
    const RunOutcome outcome = predict_run(loader, run);
    if (!outcome.predicted || !outcome.skipped_because.empty()) continue;
    TPSIM_TRY(RunSetup setup, loader.setup(run));
    const Result<Seconds> measured = measured_step(run, setup.scenario.model);
    if (!measured.ok()) continue;
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
