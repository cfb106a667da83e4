// Every second row of a table of measured runs calibrates; the other rows are predicted.
#include "evidence/calibration/calibration.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>

#include "evidence/runs/run_table.h"
#include "evidence/runs/validation.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

struct Half {
  const char* table;
  std::size_t calibrates;  // index of the first calibration row; every second row follows
  // Maximum mean error of the other half, relative to its error before calibration, or `error` if
  // that is larger. The values are the observed ones plus a margin.
  double share;
  double error = 0;
};

constexpr Half kHalves[] = {
    {"lucie_jean_zay", 0, 0.57},         {"lucie_jean_zay", 1, 0.59},
    {"internevo_a100", 0, 0.60, 0.038},  {"internevo_a100", 1, 0.60, 0.029},
    {"torchtitan_h100", 0, 0.60, 0.095}, {"torchtitan_h100", 1, 0.60, 0.036}};

std::vector<MeasuredStep> steps_of(const std::string& table) {
  const std::filesystem::path data = std::filesystem::path(TPSIM_SOURCE_DIR) / "data";
  const auto environments = read_run_environments(data / "published_runs/environments.json");
  REQUIRE(environments.ok());
  RunLoader loader(Catalogue(data), *environments, {});
  const auto runs = read_run_table(data / "strangers" / (table + ".csv"));
  REQUIRE(runs.ok());
  std::vector<MeasuredStep> steps;
  for (const PublishedRun& run : *runs) {
    Result<RunSetup> setup = loader.setup(run);
    REQUIRE(setup.ok());
    const Result<Seconds> measured = measured_step(run, setup->scenario.model);
    REQUIRE(measured.ok());
    steps.push_back({run.id, std::move(setup->scenario), std::move(setup->applied_parts),
                     std::move(setup->plan), *measured});
  }
  return steps;
}

double error_of(const Scenario& scenario, const MeasuredStep& step) {
  const Result<Prediction> predicted = simulate(scenario, step.plan);
  REQUIRE(predicted.ok());
  return std::fabs(predicted->step / step.measured - 1);
}

void check(const Half& half) {
  CAPTURE(half.table, half.calibrates);
  std::vector<MeasuredStep> known, others;
  std::size_t line = 0;
  for (MeasuredStep& step : steps_of(half.table)) {
    (line++ % 2 == half.calibrates ? known : others).push_back(std::move(step));
  }
  CalibrationChoices choices;
  choices.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const Result<Calibration> found = calibrate(known, choices);
  REQUIRE(found.ok());
  double before = 0, after = 0;
  for (const MeasuredStep& step : others) {
    before += error_of(step.scenario, step);
    after += error_of(calibrated(step.scenario, *found, step.stated), step);
  }
  CAPTURE(before / static_cast<double>(others.size()), after / static_cast<double>(others.size()));
  CHECK(after <= std::max(half.share * before, half.error * static_cast<double>(others.size())));
}

}  // namespace

TEST_CASE("half of Lucie's runs calibrates the other half") { check(kHalves[1]); }

TEST_CASE("half of an external table calibrates the other half", "[.nightly]") {
  for (const Half& half : kHalves) check(half);
}

}  // namespace tpsim
