// Calibrated stacks on runs of which a cause is planted that their table does not state.
#include "app/answers/calibrate_answer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/scenario/catalogue.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::app {
namespace {

struct Layout {
  const char* model;
  std::int64_t gpus, batch;
};
constexpr Layout kLayouts[] = {
    {"qwen3-8b", 16, 64}, {"qwen3-8b", 32, 128}, {"qwen3-14b", 32, 128}, {"qwen3-14b", 64, 256},
    {"phi-4", 32, 64},    {"phi-4", 64, 128},    {"mistral-7b", 16, 128}};

Scenario scenario_of(const char* model) {
  const Catalogue catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data");
  Scenario scenario;
  scenario.model = catalogue.load_model(model).value();
  scenario.model.seq = 4096;
  scenario.cluster = catalogue.load_cluster("dgx-h100").value();
  scenario.profile = catalogue.load_profile(scenario.cluster.profile).value();
  scenario.stack = without_limits(catalogue.load_stack("pytorch-fsdp").value());
  return scenario;
}

Plan plan_of(const Layout& layout, const ModelSpec& model) {
  Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = layout.gpus}, layout.batch);
  plan.dtype = DType::kBFloat16;
  plan.micro_batch = 1;
  plan.global_batch = layout.batch;
  plan.zero = 3;
  plan.recompute = Recompute::kFull;
  plan.attention = AttentionKind::kFlash;
  return plan;
}

struct Planted {
  PartValues parts;   // of the runs
  double factor = 1;  // of their steps
  PartValues stated = {};
};

CalibrationChoices choices() {
  CalibrationChoices all;
  all.cluster = false;
  all.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return all;
}

// Returns a calibration of the stack on the runs. The table states `stated` only.
CalibrationAnswer answer_of(const Planted& planted) {
  CalibrationAnswer answer;
  answer.moves_stack = true;
  answer.inputs.stack = scenario_of(kLayouts[0].model).stack;
  answer.inputs.cluster = scenario_of(kLayouts[0].model).cluster;
  answer.inputs.of = "7 planted runs";
  for (const Layout& layout : kLayouts) {
    Scenario believed = scenario_of(layout.model), truth = believed;
    truth.stack = with_parts(truth.stack, planted.parts);
    believed.stack = with_parts(believed.stack, planted.stated);
    const Plan plan = plan_of(layout, believed.model);
    const Result<Prediction> ran = simulate(truth, plan);
    REQUIRE(ran.ok());
    answer.inputs.steps.push_back(
        {layout.model, believed, planted.stated, plan, planted.factor * ran->step});
  }
  answer.found = calibrate(answer.inputs.steps, choices()).value();
  return answer;
}

// Returns how many rows lie in their 90 % interval with the calibrated stack.
std::size_t rows_inside(const CalibrationAnswer& answer) {
  const StackSpec stack = calibrated_stack(answer);
  std::size_t inside = 0;
  for (const MeasuredStep& step : answer.inputs.steps) {
    Scenario scenario = step.scenario;
    scenario.stack = with_parts(stack, step.stated);
    const Prediction predicted = simulate(scenario, step.plan).value();
    inside += predicted.step_low <= step.measured && step.measured <= predicted.step_high ? 1 : 0;
  }
  return inside;
}

const PartValues kCudnn = {
    {StackPart::kAttentionKernel, static_cast<std::int64_t>(AttentionKernel::kCudnn)}};
const PartValues kCompile = {{StackPart::kCompile, 1}};
const PartValues kBoth = {{StackPart::kAttentionKernel, kCudnn.begin()->second},
                          {StackPart::kCompile, 1}};

CalibrationAnswer check(const Planted& planted) {
  const CalibrationAnswer answer = answer_of(planted);
  INFO(to_string(planted.parts) << " x " << planted.factor << ", stated "
                                << to_string(planted.stated) << ": error "
                                << answer.found.error_after() << ", left out "
                                << answer.found.error_left_out() << ", spread "
                                << answer.found.spread);
  CHECK(rows_inside(answer) >= 6);
  CHECK(answer.found.error_left_out() > 0.5 * answer.found.error_after() - 1e-6);
  bool found_compile = planted.stated.contains(StackPart::kCompile);
  for (const FittedPart& part : answer.found.parts) {
    found_compile |= part.part == StackPart::kCompile && part.after == 1;
  }
  CHECK(found_compile == planted.parts.contains(StackPart::kCompile));
  return answer;
}

}  // namespace

TEST_CASE("rows lie in the interval of their stack, even if no fit explains them") {
  const CalibrationAnswer answer = check({kBoth, 0.7, {}});
  CHECK(answer.found.bias() < -0.1);
  // 8-bit GEMMs would explain steps as fast as these. The precision is named and not applied.
  CHECK(answer.found.suspected_precision);
  for (const MeasuredStep& step : answer.inputs.steps) {
    CHECK(step.plan.precision == Precision::kNone);
  }
}

TEST_CASE("steps as predicted raise no suspicion") {
  const Calibration found = answer_of({}).found;
  CHECK_FALSE(found.suspected_precision);
  CHECK(found.parts.empty());
  CHECK(std::abs(found.bias()) < 0.01);
}

TEST_CASE("nine of ten rows lie in the interval of the stack that they calibrate", "[.nightly]") {
  for (const Planted& planted :
       {Planted{kCudnn}, Planted{kCompile}, Planted{kBoth}, Planted{kBoth, 1, kCompile}}) {
    check(planted);
  }
}

}  // namespace tpsim::app
