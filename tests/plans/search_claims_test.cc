// What a search says of its own answer: that it is the best, or what was left out; or that there is
// none.
#include <catch2/catch.hpp>

#include "plans/search.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {

TEST_CASE("more memory is never slower, or the search says that it left offloading out") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 16;
  SearchSpace both = space;
  both.asked[Setting::kOffload] = {static_cast<std::int64_t>(Offload::kNone),
                                   static_cast<std::int64_t>(Offload::kOptimizer)};
  double before = 1e300, before_of_both = 1e300;
  for (const double share : {0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 1.0}) {
    scenario.profile.device.memory = Bytes(share * 16 * kGiB);
    const auto found = search(scenario, space, 1, {}),
               found_of_both = search(scenario, both, 1, {});
    REQUIRE(found.ok());
    REQUIRE(found_of_both.ok());
    if (found_of_both->plans.empty()) continue;
    const double step = found->plans.front().predicted.step.value();
    const double of_both = found_of_both->plans.front().predicted.step.value();
    CHECK(of_both <= before_of_both);
    CHECK_FALSE(found_of_both->offload_left_out);
    CHECK((step <= before || found->offload_left_out));
    if (found->plans.front().plan.offload == Offload::kNone && step > of_both) {
      CHECK(found->offload_left_out);
    }
    before = step;
    before_of_both = of_both;
  }
}

TEST_CASE("a machine whose steps last for weeks is refused by the search as by a prediction") {
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
