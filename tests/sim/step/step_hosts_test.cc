// Host run-ahead, and interval widths from communication between nodes.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/normal.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "sim/step/step.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {

using test::plan_of;

TEST_CASE("a host that does not wait for receives runs ahead over interleaved passes") {
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama()}) {
    Plan plan = plan_of(model, {1, 2, 1, 1}, 8);
    plan.schedule = ScheduleKind::kInterleaved;
    plan.virtual_stages = 2;
    plan.stage_layers = even_stage_layers(model.layers, 4, false);
    Scenario scenario = test::small_scenario(model);
    const auto host_wait = [&](bool overlaps, double slower_host) {
      Scenario with = scenario;
      with.stack.parts.overlap_p2p = overlaps;
      with.stack.host.per_op *= slower_host;
      with.stack.host.per_block_forward *= slower_host;
      LayerPricer pricer(with);
      const StageCut cut = stage_cut(plan.stage_layers, plan.degrees.pp, model);
      const PlanCosts costs = plan_costs(pricer, plan);
      const StepCost cost = step_cost(pricer, plan, costs, nullptr);
      CHECK(PlanBounds(pricer).evaluate(plan, cut, Bytes(1e18)).step <= cost.step);
      return cost.terms[StepTerm::kHostWait];
    };
    INFO(model.name);
    // First the device is slower by far, then the host.
    CHECK(host_wait(false, 1e-3) > Seconds());
    CHECK(std::abs(host_wait(true, 1e-3).value()) < 1e-9);
    CHECK(host_wait(true, 10) > Seconds(1e-6));
    CHECK(host_wait(true, 10) < host_wait(false, 10));
  }
}

TEST_CASE("expert communication between nodes widens the interval by the network's spread") {
  Scenario scenario = test::small_scenario(test::small_mixture());
  scenario.stack.host = {};
  Plan plan = test::plan_of(scenario.model, {2, 1, 4, 1, 4}, 16);
  plan.zero = 0;
  plan.sequence_parallel = true;
  const Prediction p = *simulate(scenario, plan);
  REQUIRE(p.sources.model == 1);
  constexpr double kModelSpread = 0.05, kNetworkSpread = 0.2;
  const auto squared = [](double x) { return x * x; };
  const double share = time_of(p, StepTerm::kExpertCommunication) / p.step;
  CHECK(share > time_of(p, StepTerm::kGradientReduction) / p.step);
  CHECK(squared((p.step_high / p.step - 1) / kHalfOf90) >
        squared(kModelSpread) + squared(scenario.stack.run_spread) +
            squared(scenario.stack.residual_spread) + squared(kNetworkSpread * share));
}

TEST_CASE("the interval widens by the network's spread times the time between nodes") {
  const auto squared = [](double x) { return x * x; };
  for (const ModelSpec& model : {test::small_mixture(), test::small_llama()}) {
    Scenario scenario = test::small_scenario(model);
    Plan plan = plan_of(model, {1, 2, 4, 1, 4}, 16);  // each stage on one node
    if (!has_experts(model)) plan.degrees.ep = 1;
    plan.zero = 0;
    const auto variance = [&](double network_spread) {
      scenario.cluster.calibrated.rows = 10;
      scenario.cluster.calibrated.network_spread = network_spread;
      const Prediction p = *simulate(scenario, plan);
      return squared(std::log(p.step_high / p.step) / kHalfOf90);
    };
    const Prediction p = *simulate(scenario, plan);
    const double between_nodes =
        (time_of(p, StepTerm::kTransfer) + time_of(p, StepTerm::kTiedEmbedding)) / p.step;
    INFO(model.name);
    CHECK(std::sqrt(std::max(0.0, variance(0.5) - variance(0))) ==
          Approx(0.5 * between_nodes).margin(1e-6));
  }
}

TEST_CASE("expert communication between nodes has the network's spread, not also the experts'") {
  Scenario scenario = test::small_scenario(test::small_mixture());
  Plan plan = plan_of(scenario.model, {1, 1, 8, 1, 8}, 16);
  scenario.model.experts.count = 8;
  plan.zero = 0;
  const auto variance = [&](std::int64_t gpus_of_node) {
    Scenario placed = scenario;
    placed.cluster.gpus_per_node = gpus_of_node;
    placed.cluster.inter_node = placed.cluster.intra_node;
    placed.cluster.calibrated.rows = 10;  // calibrated, with a network spread of zero
    const Prediction p = *simulate(placed, plan);
    const double half = std::log(p.step_high / p.step) / kHalfOf90;
    return std::pair(half * half, time_of(p, StepTerm::kExpertCommunication) / p.step);
  };
  const auto [inside, inside_share] = variance(8);
  const auto [between, between_share] = variance(4);
  CHECK(inside_share > 0.01);
  CHECK(between_share > 0.01);
  CHECK(between < inside);
}

}  // namespace tpsim
