// A step that took as long as it does with one thing changed is explained by that thing first.
#include "cli/log_causes.h"

#include <catch2/catch.hpp>

#include "sim/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::cli {
namespace {

std::string first_cause(const Scenario& believed, const Scenario& truth, const Plan& plan) {
  const Seconds predicted = simulate(believed, plan)->step;
  const Seconds measured = simulate(truth, plan)->step;
  REQUIRE(measured > 1.005 * predicted);
  const auto causes = likely_causes(believed, plan, predicted, measured, CauseClass::kAny, 5);
  REQUIRE(causes.ok());
  REQUIRE_FALSE(causes->empty());
  return causes->front().what;
}

}  // namespace

TEST_CASE("a log written with one part changed is explained by that part first") {
  Scenario believed = test::small_scenario(test::small_llama());
  believed.stack.parts.overlap_p2p = true;
  const Plan plan = test::plan_of(believed.model, {.tp = 2, .pp = 2, .dp = 4}, 8);
  for (const auto& [part, value] :
       {std::pair{StackPart::kNormKernel, static_cast<std::int64_t>(KernelFusion::kTorch)},
        std::pair{StackPart::kActivationKernel,
                  static_cast<std::int64_t>(ActivationKernel::kTorch)}}) {
    Scenario truth = believed;
    truth.stack = with_parts(truth.stack, {{part, value}});
    const PartRow& row = row_of(part);
    INFO(text_of(row, value));  // words that cost these plans the same are told first as well
    CHECK(first_cause(believed, truth, plan).starts_with(std::string(row.key) + "="));
  }
}

TEST_CASE("a slow link is named by its share") {
  const Scenario believed = test::small_scenario(test::small_llama());
  const Plan plan = test::plan_of(believed.model, {.tp = 1, .pp = 1, .dp = 16}, 2);
  Scenario truth = believed;
  truth.cluster.inter_node.bandwidth *= 0.5;
  CHECK(first_cause(believed, truth, plan) == "links between nodes at a half of their rate");
}

TEST_CASE("experts that are not loaded alike are named") {
  const Scenario believed = test::small_scenario(test::small_mixture());
  Plan plan = test::plan_of(believed.model, {.tp = 1, .pp = 1, .dp = 4}, 2);
  plan.degrees.ep = 4;
  Scenario truth = believed;
  truth.stack.parts.expert_load = kNaturalLoad;
  CHECK(first_cause(believed, truth, plan).starts_with("expert_load="));
}

}  // namespace tpsim::cli
