// The work of a search is estimated in advance, never too low, and limited.
#include "plans/search/search_work.h"

#include <catch2/catch.hpp>

#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

SearchSpace space_of(std::int64_t gpus, std::int64_t batch) {
  SearchSpace space;
  space.gpus = gpus;
  space.global_batch = batch;
  return space;
}

}  // namespace

TEST_CASE("no search considers more plans than were estimated") {
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama(), test::small_mixture()}) {
    for (const std::int64_t gpus : {1, 4, 8, 32}) {
      if (gpus == 32 && TPSIM_SEARCH_ROUNDS < 12) continue;  // slow with sanitizers
      for (const Objective objective : {Objective::kTime, Objective::kCost}) {
        SearchSpace space = space_of(gpus, 48);
        space.objective = objective;
        const Scenario scenario = test::small_scenario(model);
        const auto found = search(scenario, space, 1, {});
        REQUIRE(found.ok());
        // Combinations that are illegal from the start are counted, but cost almost nothing.
        CHECK(static_cast<double>(found->feasible) <= work_of(scenario, space, 1).plans);
      }
    }
  }
}

TEST_CASE("the searches of published models are far below the limits") {
  ModelSpec model = test::small_bloom();
  model.layers = 128;
  Scenario scenario = test::small_scenario(model);
  scenario.cluster.nodes = 8192;
  const SearchWork work = work_of(scenario, space_of(32768, 16384), 10);
  CHECK(work.estimate.time < 0.2 * scenario.limits.time);
  CHECK(work.estimate.memory < 0.2 * scenario.limits.memory);
}

TEST_CASE(
    "a search beyond the limits is not started, and the error names the option that lifts them") {
  for (const std::int64_t layers : {10'000, 1 << 24}) {
    ModelSpec model = test::small_bloom();
    model.layers = layers;
    model.hidden = model.ffn_hidden = 64;
    model.attention = {1, 1, 64, PositionKind::kAlibi, 10000.0};
    const Scenario scenario = test::small_scenario(model);
    const auto found = search(scenario, space_of(8, 8), 1, {});
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().kind == ErrorKind::kDoesNotFit);
    CHECK_THAT(found.error().hint, Catch::Contains("--no-limits"));
  }
}

TEST_CASE("the limit counts plans times tasks") {
  const Scenario scenario = test::small_scenario(test::small_bloom());
  CHECK(search(scenario, space_of(16, 1 << 16), 1, {}).ok());
  CHECK_FALSE(search(scenario, space_of(16, 1 << 20), 10'000, {}).ok());
}

TEST_CASE("without limits a search of the same space starts") {
  ModelSpec model = test::small_bloom();
  Scenario scenario = test::small_scenario(model);
  scenario.limits = {Seconds(1e-9), Bytes(1)};
  CHECK_FALSE(search(scenario, space_of(4, 8), 1, {}).ok());
  scenario.limits = kNoLimits;
  CHECK(search(scenario, space_of(4, 8), 1, {}).ok());
}

TEST_CASE("a step with too many tasks is not simulated, and timelines have a lower limit") {
  const ModelSpec model = test::small_bloom();
  Scenario scenario = test::small_scenario(model);
  Plan plan = test::plan_of(model, {1, 8, 1, 1}, 1 << 19);
  plan.micro_batch = 2;
  REQUIRE(plan.global_batch == 1 << 20);
  CHECK(simulate(scenario, plan).ok());
  const auto timeline = simulate_timeline(scenario, plan);
  REQUIRE_FALSE(timeline.ok());
  CHECK(timeline.error().kind == ErrorKind::kDoesNotFit);
  scenario.limits.memory = Bytes(1 << 20);
  CHECK_FALSE(simulate(scenario, plan).ok());
}

}  // namespace tpsim
