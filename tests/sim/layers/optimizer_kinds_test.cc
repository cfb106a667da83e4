// Optimizers that the reference model does not train: their state, time and checkpoints follow from
// their rows.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/software/part_rules.h"
#include "lowering/passes/step_habits.h"
#include "tests/sim/layers/part_laws.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

Scenario scenario_of(OptimizerKind kind) {
  Scenario scenario = test::small_scenario(test::small_llama());
  scenario.model.vocab_multiple = 1;  // parameter counts have no padding
  scenario.stack.training.optimizer_kind = kind;
  scenario.stack.memory.allocation_granularity = Bytes(1);
  return scenario;
}

double state_in(const Prediction& found) {
  return found.memory.front()
      .by_category[static_cast<std::size_t>(MemoryCategory::kOptimizer)]
      .value();
}

Plan plan_of_kind(const Scenario& scenario, int zero) {
  Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 4}, 4);
  plan.zero = zero;
  return plan;
}

}  // namespace

TEST_CASE("memory and checkpoints hold the state that the optimizer's row states") {
  for (const OptimizerKind kind : all_of<OptimizerKind>()) {
    if (kind == OptimizerKind::kMuon) continue;  // whose owners differ
    INFO(name_of(kind));
    const Scenario scenario = scenario_of(kind);
    for (const int zero : {0, 1, 3}) {
      const Plan plan = plan_of_kind(scenario, zero);
      const double state = state_bytes(scenario.model, scenario.stack, plan.dtype);
      CHECK(state_in(test::with(scenario, plan, {})) ==
            Approx(zero == 0 ? state : state / 4).epsilon(0.001));
    }
    const Plan plan = plan_of_kind(scenario, 0);
    const Scenario adamw = scenario_of(OptimizerKind::kAdamW);
    CHECK(checkpoint_size(scenario.model, plan, scenario.stack).value() -
              state_bytes(scenario.model, scenario.stack, plan.dtype) ==
          Approx(checkpoint_size(adamw.model, plan, adamw.stack).value() -
                 state_bytes(adamw.model, adamw.stack, plan.dtype)));
  }
}

TEST_CASE("an update moves the bytes of its state, and less state takes less time") {
  const auto update = [](OptimizerKind kind, DType moments) {
    Scenario scenario = scenario_of(kind);
    scenario.stack.parts.optimizer_dtype = moments;
    return time_of(test::with(scenario, plan_of_kind(scenario, 0), {}), StepTerm::kOptimizer);
  };
  constexpr std::array kByState = {OptimizerKind::kSgd,         OptimizerKind::kLion8,
                                   OptimizerKind::kTorchAdamW4, OptimizerKind::kTorchAdamW8,
                                   OptimizerKind::kLion,        OptimizerKind::kAdamW};
  for (std::size_t i = 1; i < kByState.size(); ++i) {
    CHECK(update(kByState[i - 1], DType::kFloat32) <= update(kByState[i], DType::kFloat32));
  }
  // Two moments of 16 bits are as many bytes as one of 32 bits.
  CHECK(update(OptimizerKind::kAdamW, DType::kBFloat16).value() ==
        Approx(update(OptimizerKind::kLion, DType::kFloat32).value()));
  CHECK(update(OptimizerKind::kAdafactor, DType::kFloat32) >
        update(OptimizerKind::kAdamW, DType::kFloat32));
}

TEST_CASE("an optimizer with its own format of moments refuses another dtype and the host") {
  Scenario scenario = scenario_of(OptimizerKind::kTorchAdamW8);
  Plan plan = plan_of_kind(scenario, 1);
  CHECK(broken_part_rule(scenario.stack, scenario.model, plan) == nullptr);
  scenario.stack.parts.optimizer_dtype = DType::kBFloat16;
  REQUIRE(broken_part_rule(scenario.stack, scenario.model, plan) != nullptr);
  scenario.stack.parts.optimizer_dtype = DType::kFloat32;
  plan.offload = Offload::kOptimizer;
  REQUIRE(broken_part_rule(scenario.stack, scenario.model, plan) != nullptr);
}

}  // namespace tpsim
