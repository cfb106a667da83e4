// Prices of optimizers on the CPU, judged by published runs, and their uncertainty.
#include "core/software/cpu_optimizers.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "core/base/files.h"
#include "core/base/normal.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

struct MeasuredOptimizer {
  std::string id, source, cpu_optimizer, cluster, model;
  std::int64_t gpus = 0, gpus_per_node = 0, seq = 0, global_batch = 0;
  std::string quantity;
  double least = 0, most = 0;
};

std::vector<MeasuredOptimizer> measured_optimizers() {
  const auto path = std::filesystem::path(TPSIM_SOURCE_DIR) / "data/microbench/cpu_optimizers.csv";
  std::string text = *read_file(path, std::int64_t{1} << 20);
  std::string_view left = text;
  cut_off(left, "\n");  // the header
  std::vector<MeasuredOptimizer> rows;
  while (!left.empty()) {
    std::string_view line = cut_off(left, "\n");
    const auto word = [&] { return std::string(cut_off(line, ",")); };
    const auto number = [&] { return std::stod(word()); };
    const auto count = [&] { return static_cast<std::int64_t>(number()); };
    MeasuredOptimizer row{word(),  word(),  word(),  word(),  word(),
                          count(), count(), count(), count(), word()};
    row.least = number();
    row.most = number();
    rows.push_back(std::move(row));
  }
  return rows;
}

// FSDP over all GPUs, with the optimizer on the CPU.
Plan plan_of(const MeasuredOptimizer& row, const ModelSpec& model) {
  Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = row.gpus}, 1);
  plan.micro_batch = 1;
  plan.global_batch = row.global_batch;
  plan.zero = row.gpus > 1 ? 3 : 1;
  plan.recompute = Recompute::kFull;
  plan.attention = AttentionKind::kFlash;
  plan.offload = Offload::kOptimizer;
  return plan;
}

Scenario scenario_of(const MeasuredOptimizer& row) {
  const Catalogue catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data");
  Scenario scenario;
  scenario.model = catalogue.load_model(row.model).value();
  scenario.model.seq = row.seq;
  scenario.cluster = catalogue.load_cluster(row.cluster).value();
  scenario.cluster.gpus_per_node = row.gpus_per_node;
  scenario.profile = catalogue.load_profile(scenario.cluster.profile).value();
  scenario.stack = without_limits(catalogue.load_stack("pytorch-fsdp").value());
  scenario.stack.parts.cpu_optimizer =
      static_cast<CpuOptimizer>(*parse_value(row_of(StackPart::kCpuOptimizer), row.cpu_optimizer));
  return scenario;
}

Prediction predicted(const Scenario& scenario, const Plan& plan) {
  const Result<Prediction> found = simulate(scenario, plan);
  REQUIRE(found.ok());
  return *found;
}

}  // namespace

TEST_CASE("published optimizers on the CPU are priced within a factor of 1.6 or the interval") {
  const std::vector<MeasuredOptimizer> rows = measured_optimizers();
  REQUIRE(rows.size() == 8);
  for (const MeasuredOptimizer& row : rows) {
    const Scenario scenario = scenario_of(row);
    Plan plan = plan_of(row, scenario.model);
    const Prediction offloaded = predicted(scenario, plan);
    double seconds = offloaded.step.value();
    if (row.quantity == "update") seconds = time_of(offloaded, StepTerm::kOptimizer).value();
    if (row.quantity == "added") {
      plan.offload = Offload::kNone;
      seconds -= predicted(scenario, plan).step.value();
    }
    const double spread =
        kHalfOf90 * offload_spread(scenario.stack.parts.cpu_optimizer, scenario.cluster.host);
    const bool is_step = row.quantity == "step";
    const double low = is_step ? offloaded.step_low.value() : seconds * std::exp(-spread);
    const double high = is_step ? offloaded.step_high.value() : seconds * std::exp(spread);
    constexpr double kFactor = 1.6;
    INFO(row.id << ": " << seconds << " s (" << low << " to " << high << "), measured " << row.least
                << " to " << row.most << " s");
    const bool is_near = seconds < kFactor * row.most && kFactor * seconds > row.least;
    const bool is_inside = low <= row.most && row.least <= high;
    CHECK((is_near || is_inside));
  }
}

TEST_CASE("a slower optimizer on the CPU is never faster, and an unknown host is less certain") {
  Scenario scenario = scenario_of(measured_optimizers().front());
  const Plan plan = plan_of(measured_optimizers().front(), scenario.model);
  const auto step_with = [&](CpuOptimizer kind) {
    scenario.stack.parts.cpu_optimizer = kind;
    return predicted(scenario, plan);
  };
  const Prediction native = step_with(CpuOptimizer::kNative);
  const Prediction megatron = step_with(CpuOptimizer::kMegatron);
  CHECK(native.step < megatron.step);
  CHECK(megatron.step < step_with(CpuOptimizer::kTorch).step);
  scenario.cluster.host.source = HostSpec{}.source;
  const Prediction unknown = step_with(CpuOptimizer::kMegatron);
  CHECK(unknown.step == megatron.step);
  CHECK(unknown.step_high > megatron.step_high);
  CHECK(unknown.step_low < megatron.step_low);
}

}  // namespace tpsim
