// Statements of a search about its result: the plan is the best, some plans were not considered, or
// no plan exists.
#include <catch2/catch.hpp>

#include "lowering/passes/quantization.h"
#include "plans/questions/why_not.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {

TEST_CASE("more memory is never slower: with little memory, offloading is tried by default") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  SearchSpace both = space;
  both.asked[Setting::kOffload] = {static_cast<std::int64_t>(Offload::kNone),
                                   static_cast<std::int64_t>(Offload::kOptimizer)};
  double before = 1e300;
  for (const double share : {0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 1.0}) {
    scenario.profile.device.memory = Bytes(share * 16 * kGiB);
    const auto found = search(scenario, space, 4, {});
    const auto found_of_both = search(scenario, both, 4, {});
    REQUIRE(found.ok());
    REQUIRE(found_of_both.ok());
    CHECK_FALSE(found->offload_left_out);
    REQUIRE(found->plans.size() == found_of_both->plans.size());
    CHECK(found->scores == found_of_both->scores);
    if (found->plans.empty()) continue;
    const double step = found->plans.front().predicted.step.value();
    CHECK(step <= before);
    before = step;
  }
}

TEST_CASE(
    "selective recompute is searched with flash attention where it has modules to recompute") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  space.asked[Setting::kAttention] = {static_cast<std::int64_t>(AttentionKind::kFlash)};
  SearchSpace selective = space;
  selective.asked[Setting::kRecompute] = {static_cast<std::int64_t>(Recompute::kSelective)};
  const auto reasons = [&] { return search(scenario, space, 1, {}).value().pruned; };
  const std::string does_nothing =
      "flash attention stores no probabilities, so selective recompute changes nothing";
  CHECK(reasons().count(does_nothing) == 1);
  scenario.stack.parts.recompute_modules = bit(RecomputeModule::kMlp);
  CHECK(reasons().count(does_nothing) == 0);
  for (const double share : {0.05, 0.1, 1.0}) {
    scenario.profile.device.memory = Bytes(share * 16 * kGiB);
    const SearchResult alone = search(scenario, selective, 1, {}).value();
    const SearchResult all = search(scenario, space, 1, {}).value();
    if (alone.plans.empty()) continue;
    REQUIRE(!all.plans.empty());
    CHECK(all.scores.front() <= alone.scores.front());
  }
}

TEST_CASE("an unsupported precision is counted among supported ones, and refused alone") {
  const Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  const auto impossible = static_cast<std::int64_t>(Precision::kMxFp8);
  REQUIRE_FALSE(check_precision(scenario, Precision::kMxFp8).ok());
  const SearchResult without = search(scenario, space, 1, {}).value();
  space.asked[Setting::kPrecision] = {static_cast<std::int64_t>(Precision::kNone), impossible};
  const SearchResult found = search(scenario, space, 1, {}).value();
  CHECK(found.scores == without.scores);
  CHECK(found.pruned.at("the GPU or the stack does not support the precision") > 0);
  space.asked[Setting::kPrecision] = {impossible};
  CHECK(search(scenario, space, 1, {}).error().where == "--precision");
}

TEST_CASE("every search tries the parts that the stack leaves open") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.cluster.nodes = 2;
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  const auto with = [&](std::int64_t value) {
    Scenario one = scenario;
    one.stack = with_parts(one.stack, {{StackPart::kBlockingLaunches, value}});
    return one;
  };
  const double free = search(with(0), space, 1, {}).value().scores.front();
  const double blocking = search(with(1), space, 1, {}).value().scores.front();
  REQUIRE(free < blocking);
  scenario.stack = with_parts(scenario.stack, {{StackPart::kBlockingLaunches, 1}});
  scenario.stack.choices.parts[StackPart::kBlockingLaunches] = {1, 0};
  const SearchResult found = search(scenario, space, 1, {}).value();
  CHECK(found.scores.front() == free);
  REQUIRE(found.tried.size() == 2);
  CHECK(found.tried.front().parts.at(StackPart::kBlockingLaunches) == 0);
  CHECK(found.tried.back().step->value() == blocking);
  const Scenario chosen = with_found_parts(scenario, found);
  CHECK(simulate(chosen, found.plans.front().plan)->step.value() == free);
  CHECK(pareto_front(scenario, space, {})->plans.front().predicted.step.value() == free);
  const WhyNot answer = why_not(scenario, space, {{Setting::kZero, 0}}).value();
  CHECK(answer.best.predicted.step.value() == free);
  CHECK(answer.tried.size() == 2);
}

TEST_CASE("steps of weeks are refused by a search as by a prediction") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  for (const double seconds : {1e5, 1e8, 1e13}) {
    scenario.stack.host.per_micro_batch = Seconds(seconds);
    const auto found = search(scenario, space, 3, {}, 2);
    const auto front = pareto_front(scenario, space, {});
    CHECK(found.ok() == front.ok());
    if (seconds > 1e6) {
      REQUIRE_FALSE(found.ok());
      CHECK_THAT(found.error().message, Catch::Contains("days"));
    } else if (found.ok()) {
      for (const PlannedRun& run : found->plans) CHECK(run.predicted.step.value() > 0);
    }
  }
}

}  // namespace tpsim
