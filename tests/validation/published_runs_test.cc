// Predictions of published runs stay within the recorded errors. Only rows that no constant was
// fitted on count.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "evidence/runs/run_table.h"
#include "evidence/runs/validation.h"

namespace tpsim {
namespace {

// Maximum errors, as fractions: the observed ones plus a margin.
struct Tolerance {
  const char* file;
  const char* regime;  // empty: all rows
  double mape, median, memory;
  double kendall_tau;  // minimum
  double coverage;     // minimum coverage of the 90 % intervals
};

constexpr Tolerance kTolerances[] = {
    {"bloom_jean_zay", "numa-fixed", 0.027, 0.020, 0.060, 0.75, 0.88},
    {"bloom_jean_zay", "before-numa-fix", 0.082, 0.086, 0.050, 0.60, 0.83},
    {"vtrain_a100_multi", "", 0.0705, 0.030, 1, 0.45, 0.80},
    {"vtrain_a100_single", "", 0.076, 0.061, 1, 0.78, 0.85},
    {"megatron_selene", "", 0.025, 0.027, 1, 0.99, 0.90},
    {"dgxc_h100", "", 0.047, 0.045, 1, 0.85, 0.88},
    {"pipeline_a100", "", 0.052, 0.057, 0.060, 0.99, 0.90},
    {"mosaic_fsdp", "", 0.051, 0.038, 1, 0.90, 0.80},
    {"simumax_b200_a100pcie", "", 0.020, 0.015, 0.014, 0.90, 0.90},
};

std::filesystem::path data_folder() { return std::filesystem::path(TPSIM_SOURCE_DIR) / "data"; }

RunLoader make_loader() {
  const auto environments =
      read_run_environments(data_folder() / "published_runs/environments.json");
  REQUIRE(environments.ok());
  return RunLoader(Catalogue(data_folder()), *environments, {});
}

// Outcomes of the rows of a table in one regime.
std::vector<RunOutcome> outcomes_of(RunLoader& loader, const Tolerance& wanted) {
  const auto runs =
      read_run_table(data_folder() / "published_runs" / (std::string(wanted.file) + ".csv"));
  REQUIRE(runs.ok());
  std::vector<RunOutcome> outcomes;
  for (const PublishedRun& run : *runs) {
    if (*wanted.regime == '\0' || run.regime == wanted.regime) {
      outcomes.push_back(predict_run(loader, run));
    }
  }
  return outcomes;
}

std::vector<RunOutcome> test_rows(std::vector<RunOutcome> outcomes) {
  std::erase_if(outcomes, [](const RunOutcome& run) { return run.calibration; });
  return outcomes;
}

}  // namespace

TEST_CASE("published runs are predicted within their recorded tolerance") {
  RunLoader loader = make_loader();
  for (const Tolerance& tolerance : kTolerances) {
    CAPTURE(tolerance.file, tolerance.regime);
    const ValidationSummary s = summarize(test_rows(outcomes_of(loader, tolerance)));
    CHECK(s.n > 0);
    CHECK(s.mape <= tolerance.mape);
    CHECK(s.median_ape <= tolerance.median);
    CHECK(s.memory_mape <= tolerance.memory);
    CHECK(s.interval_coverage >= tolerance.coverage);
    if (s.pairs > 0) CHECK(s.kendall_tau >= tolerance.kendall_tau);
  }
}

TEST_CASE("runs of external sources are predicted as recorded") {
  RunLoader loader = make_loader();
  std::vector<RunOutcome> all;
  for (const char* file : {"lucie_jean_zay", "internevo_a100", "fms_fsdp", "torchtitan_h100",
                           "mlperf_nemo", "megatron_bridge", "moe_blackwell_dense", "nemo_summary",
                           "torchtitan_a100", "torchtitan_h100_rest"}) {
    const auto runs = read_run_table(data_folder() / "strangers" / (std::string(file) + ".csv"));
    REQUIRE(runs.ok());
    for (const PublishedRun& run : *runs) all.push_back(predict_run(loader, run));
  }
  const ValidationSummary s = summarize(all);
  CHECK(s.n >= 186);
  CHECK(s.mape < 0.062);
  CHECK(s.interval_coverage > 0.8);
  for (const RunOutcome& run : all) {
    CAPTURE(run.id);
    CHECK((run.predicted || !run.skipped_because.empty()));
    if (run.predicted) CHECK_FALSE(run.stack.empty());
  }
}

TEST_CASE("MoE runs are predicted as recorded") {
  RunLoader loader = make_loader();
  const auto runs = read_run_table(data_folder() / "strangers" / "moe_rows.csv");
  REQUIRE(runs.ok());
  std::vector<RunOutcome> all;
  for (const PublishedRun& run : *runs) all.push_back(predict_run(loader, run));
  const ValidationSummary s = summarize(all);
  CHECK(s.n >= 139);
  CHECK(s.mape < 0.12);
  CHECK(s.median_ape < 0.1);
  CHECK(s.interval_coverage > 0.9);
  CHECK(s.interval_coverage < 0.97);
}

TEST_CASE(
    "every BLOOM run that ran out of memory is predicted to run out of memory, and no other") {
  RunLoader loader = make_loader();
  const ValidationSummary s = summarize(outcomes_of(loader, {"bloom_jean_zay", "", 1, 1, 1, 0, 0}));
  CHECK(s.oom_total == 2);
  CHECK(s.oom_caught == s.oom_total);
  CHECK(s.false_oom == 0);
}

TEST_CASE("runs that fitted on 40 GB are not predicted to run out of memory") {
  RunLoader loader = make_loader();
  CHECK(summarize(outcomes_of(loader, {"mosaic_fsdp", "", 1, 1, 1, 0, 0})).false_oom == 0);
}

TEST_CASE("intervals contain nine of ten test rows of all tables together") {
  RunLoader loader = make_loader();
  std::vector<RunOutcome> all;
  for (const Tolerance& tolerance : kTolerances) {
    for (RunOutcome& run : test_rows(outcomes_of(loader, tolerance))) all.push_back(std::move(run));
  }
  const double held = summarize(all).interval_coverage;
  CHECK(held > 0.85);
  CHECK(held < 0.95);
}

TEST_CASE("no data set has more than fifteen calibration rows") {
  RunLoader loader = make_loader();
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "published_runs")) {
    if (entry.path().extension() != ".csv") continue;
    const auto runs = read_run_table(entry.path());
    REQUIRE(runs.ok());
    int fitted = 0;
    for (const PublishedRun& run : *runs) {
      const RunEnvironment* environment = loader.environment(run);
      REQUIRE(environment != nullptr);
      for (const std::string& id : environment->calibration_rows) fitted += id == run.id ? 1 : 0;
    }
    CAPTURE(entry.path());
    CHECK(fitted <= 15);
  }
}

TEST_CASE("excluded rows have a reason") {
  RunLoader loader = make_loader();
  for (const Tolerance& tolerance : kTolerances) {
    for (const RunOutcome& run : outcomes_of(loader, tolerance)) {
      CAPTURE(run.id);
      CHECK((run.predicted || !run.skipped_because.empty()));
    }
  }
}

}  // namespace tpsim
