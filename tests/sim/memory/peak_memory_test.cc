// Laws of the memory over a step: its peak is that of the closed form, and nothing is left at the
// end.
#include "sim/memory/peak_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/step/simulate.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim {
namespace {

double total_of(const std::vector<LiveMemory>& live) {
  double bytes = 0;
  for (const LiveMemory& one : live) bytes += one.bytes;
  return bytes;
}

void check_same_peaks(const Scenario& scenario, const Plan& plan) {
  const auto predicted = simulate(scenario, plan);
  REQUIRE(predicted.ok());
  const auto step = step_memory(scenario, plan);
  REQUIRE(step.ok());
  REQUIRE(step->peaks.size() == predicted->memory.size());
  for (std::size_t stage = 0; stage < step->peaks.size(); ++stage) {
    INFO("stage " << stage);
    CHECK(total_of(step->peaks[stage].live) ==
          Approx(predicted->memory[stage].total().value()).epsilon(1e-9));
    const MemorySamples& samples = step->samples[stage];
    double highest = 0;
    for (const MemorySample& sample : samples) highest = std::max(highest, total(sample.bytes));
    CHECK(highest + step->overheads[stage].total().value() ==
          Approx(predicted->memory[stage].total().value()).epsilon(1e-9));
    CHECK(total(samples.back().bytes) == Approx(total(samples.front().bytes)).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("the contents of the memory at the peak add up to the predicted memory") {
  for (const test::StepCase& c : test::step_cases()) {
    INFO(c.model.name << " " << c.name);
    Scenario scenario = test::scenario_of(c);
    check_same_peaks(scenario, c.plan);
    scenario.stack.training.overlap_gradient_reduction = true;
    scenario.stack.memory.layer_in_reduction = true;
    scenario.stack.memory.allocation_granularity = Bytes(512);
    scenario.stack.memory.caching_allocator = true;
    check_same_peaks(scenario, c.plan);
  }
}

TEST_CASE("offloaded activations and gradients that backward allocates are in the contents") {
  for (const test::StepCase& c : test::step_cases()) {
    INFO(c.model.name << " " << c.name);
    Scenario scenario = test::scenario_of(c);
    scenario.stack.parts.offload_layers = 2;
    check_same_peaks(scenario, c.plan);
    scenario.stack.parts.offload_layers = 0;
    scenario.stack.parts.master_weights = MasterWeights::kAutocast;
    scenario.stack.parts.compile = true;
    check_same_peaks(scenario, c.plan);
    scenario.stack.parts.optimizer_kernel = KernelFusion::kTorch;
    check_same_peaks(scenario, c.plan);
  }
}

TEST_CASE("multi-token prediction is in the contents") {
  ModelSpec model = test::small_llama();
  model.ends.prediction_layers = 2;
  Plan plan = test::plan_of(model, {1, 2, 2, 1}, 4);
  for (const int zero : {0, 1, 2}) {
    plan.zero = zero;
    Scenario scenario = test::small_scenario(model);
    check_same_peaks(scenario, plan);
    scenario.stack.training.overlap_gradient_reduction = true;
    scenario.stack.memory.layer_in_reduction = true;
    check_same_peaks(scenario, plan);
  }
}

}  // namespace tpsim
