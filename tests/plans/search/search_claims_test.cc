// Statements of a search about its result: the plan is the best, some plans were not considered, or
// no plan exists.
#include <algorithm>
#include <catch2/catch.hpp>
#include <initializer_list>

#include "lowering/passes/quantization.h"
#include "plans/questions/why_not.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {

namespace {

SearchSpace with_offloads(SearchSpace space, std::initializer_list<Offload> offloads) {
  std::vector<std::int64_t>& asked = space.asked[Setting::kOffload];
  for (const Offload offload : offloads) asked.push_back(static_cast<std::int64_t>(offload));
  return space;
}

// Returns the scores that a default search should find: of plans without offload, and of offloaded
// plans whose whole interval is better than the best of them. If no plan fits without offload, of
// all offloaded plans.
std::vector<double> expected_scores(const Scenario& scenario, const SearchSpace& space, int top) {
  constexpr int kAll = 100'000;
  std::vector<double> scores =
      search(scenario, with_offloads(space, {Offload::kNone}), kAll, {})->scores;
  const auto offloaded = search(scenario, with_offloads(space, {Offload::kOptimizer}), kAll, {});
  const double best = scores.empty() ? 1e300 : scores.front();
  for (const PlannedRun& run : offloaded->plans) {
    if (run.predicted.step_high.value() < best) scores.push_back(run.predicted.step.value());
  }
  std::sort(scores.begin(), scores.end());
  scores.resize(std::min<std::size_t>(scores.size(), static_cast<std::size_t>(top)));
  return scores;
}

}  // namespace

TEST_CASE("an offloaded optimizer is found if nothing else fits or its whole interval is better") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.stack.residual_spread = 0.01;  // narrow intervals
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  bool was_better = false, was_not = false;
  for (const double bandwidth : {400e9, 400e15}) {  // of host memory; the latter is free
    scenario.cluster.host.memory_bandwidth = BytesPerSecond(bandwidth);
    scenario.cluster.host.link = BytesPerSecond(bandwidth);
    for (const double share : {0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 1.0}) {
      scenario.profile.device.memory = Bytes(share * 16 * kGiB);
      const auto found = search(scenario, space, 4, {});
      REQUIRE(found.ok());
      INFO(bandwidth << " B/s, " << share);
      CHECK(found->scores == expected_scores(scenario, space, 4));
      if (found->offload != OffloadSearch::kSurely) continue;
      const bool offloads = found->plans.front().plan.offload == Offload::kOptimizer;
      (offloads ? was_better : was_not) = true;
    }
  }
  CHECK(was_better);
  CHECK(was_not);
}

TEST_CASE("more memory is never slower if offloading may be chosen freely") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  const SearchSpace both = with_offloads(space, {Offload::kNone, Offload::kOptimizer});
  double before = 1e300;
  for (const double share : {0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 1.0}) {
    scenario.profile.device.memory = Bytes(share * 16 * kGiB);
    const auto found = search(scenario, both, 4, {});
    REQUIRE(found.ok());
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
  const WhyNot answer = why_not(scenario, space, {{{Setting::kZero, 0}}, {}}).value();
  CHECK(answer.best.predicted.step.value() == free);
  CHECK(answer.tried.size() == 2);
}

TEST_CASE("counts and time of a search are those of all values of open parts") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.cluster.nodes = 2;
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  const SearchResult one = search(scenario, space, 1, {}).value();
  scenario.stack.choices.parts[StackPart::kBlockingLaunches] = {1, 0};
  const SearchResult both = search(scenario, space, 1, {}).value();
  REQUIRE(both.tried.size() == 2);
  CHECK(both.considered == 2 * one.considered);
  CHECK(both.simulated > one.simulated);
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
