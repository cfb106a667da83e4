#include "plans/search.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "plans/enumerate.h"
#include "sim/predict.h"
#include "sim/step.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// Every plan, simulated event-exactly, with no pruning.
std::vector<double> brute_force(const Scenario& scenario, const SearchSpace& space) {
  PieceCosts pieces(scenario);
  std::vector<double> steps;
  enumerate_plans(scenario, space, [&](const Plan& plan) {
    REQUIRE(check_plan(scenario, plan).ok());
    const Prediction p = predict(pieces, plan);
    if (p.p_oom <= 0.5) steps.push_back(p.step.value());
  });
  std::sort(steps.begin(), steps.end());
  return steps;
}

Scenario tight(const ModelSpec& model) {
  Scenario scenario = test::small_scenario(model);
  scenario.profile.device.memory = Bytes(0.6 * kGiB);
  return scenario;
}

}  // namespace

TEST_CASE("the search finds what brute force finds") {
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama()}) {
    for (const std::int64_t gpus : {1, 4, 8, 16}) {
      const Scenario scenario = tight(model);
      SearchSpace space;
      space.gpus = gpus;
      space.global_batch = 16;
      if (gpus == 4) space.cp = {1, 2, 4};
      const std::vector<double> all = brute_force(scenario, space);
      const Result<SearchResult> found = search(scenario, space, 5, {});
      REQUIRE(found.ok());
      INFO(model.name << " on " << gpus);
      CHECK(found->feasible == static_cast<std::int64_t>(all.size()));
      REQUIRE(found->plans.size() == std::min<std::size_t>(5, all.size()));
      for (std::size_t i = 0; i < found->plans.size(); ++i) {
        CHECK(found->plans[i].predicted.step.value() == Approx(all[i]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("sequences are shared when asked, and unasked only when they are long") {
  Scenario scenario = test::small_scenario(test::small_llama());
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  const auto degrees = [&] {
    std::set<std::int64_t> seen;
    enumerate_plans(scenario, space, [&](const Plan& plan) {
      CHECK(check_plan(scenario, plan).ok());
      CHECK(gpu_count(plan) == space.gpus);
      seen.insert(plan.degrees.cp);
    });
    return seen;
  };
  CHECK(degrees() == std::set<std::int64_t>{1});
  scenario.model.seq = 16384;
  CHECK(degrees() == std::set<std::int64_t>{1, 2, 4});
  space.cp = {2, 8};
  CHECK(degrees() == std::set<std::int64_t>{2, 8});
  scenario.model.seq = 136;  // 8 divides it, 16 does not
  CHECK(degrees() == std::set<std::int64_t>{2});
}

TEST_CASE("considered plans are feasible or counted with a reason") {
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  const Result<SearchResult> found = search(tight(test::small_bloom()), space, 3, {});
  REQUIRE(found.ok());
  std::int64_t pruned = 0;
  for (const auto& [reason, count] : found->pruned) pruned += count;
  CHECK(found->considered == found->feasible + pruned);
}

TEST_CASE("when nothing fits the nearest miss is reported") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.profile.device.memory = Bytes(8 * kMiB);
  SearchSpace space;
  space.gpus = 4;
  space.global_batch = 8;
  const Result<SearchResult> found = search(scenario, space, 3, {});
  REQUIRE(found.ok());
  CHECK(found->plans.empty());
  REQUIRE(found->nearest_miss.has_value());
  CHECK(found->nearest_miss->predicted.peak > scenario.profile.device.memory);
}

TEST_CASE("GPU counts that the cluster cannot give are refused") {
  const Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.global_batch = 16;
  for (const std::int64_t gpus : {0, 5, 33, 64}) {
    space.gpus = gpus;
    CHECK_FALSE(search(scenario, space, 1, {}).ok());
  }
}

}  // namespace tpsim
