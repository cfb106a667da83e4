// The plans that a search tries: all requested values, and none that is excluded or that the model,
// the stack or the cluster rules out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "plans/search/enumerate.h"
#include "plans/search/search.h"
#include "sim/step/predict.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// Converts enum values to integers, the type of setting values.
template <class... E>
std::vector<std::int64_t> numbers(E... values) {
  return {static_cast<std::int64_t>(values)...};
}

}  // namespace

TEST_CASE("expert parallelism is searched only for models with experts") {
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 8;
  space.asked[Setting::kEp] = {2};
  const Result<SearchResult> dense =
      search(test::small_scenario(test::small_llama()), space, 1, {});
  REQUIRE_FALSE(dense.ok());
  CHECK_THAT(dense.error().message, Catch::Contains("has no experts"));
  const Result<SearchResult> found =
      search(test::small_scenario(test::small_mixture()), space, 3, {});
  REQUIRE(found.ok());
  for (const PlannedRun& run : found->plans) CHECK(run.plan.degrees.ep == 2);
}

TEST_CASE("excluded values are not searched, all others are") {
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  const Scenario scenario = test::small_scenario(test::small_bloom());
  for (const SettingRow& row : setting_rows()) {
    if (row.role == SettingRole::kGiven) continue;
    const Setting setting = row.setting;
    std::int64_t with = 0, others = 0, left = 0;
    std::optional<SettingValue> excluded;
    enumerate_plans(scenario, space, [&](const Plan& plan) {
      const SettingValue value = setting_of(plan, setting);
      const bool counts_nothing = row.counts_for != nullptr && value.value == 0;
      if (!excluded && !counts_nothing) excluded = value;
      if (!excluded) return void(++others);
      ++(value == *excluded ? with : others);
    });
    SearchSpace without = space;
    without.excluded = {*excluded};
    enumerate_plans(scenario, without, [&](const Plan& plan) {
      CHECK_FALSE(setting_of(plan, setting) == *excluded);
      ++left;
    });
    INFO(to_string(*excluded));
    CHECK(with > 0);
    // Selective recompute with flash attention is equivalent to none unless none is excluded. If
    // the only default value is excluded, other values are tried.
    if (setting != Setting::kRecompute && setting != Setting::kZero &&
        setting != Setting::kRankOrder && row.tried.size() != 1) {
      CHECK(left == others);
    }
  }
}

TEST_CASE("context parallelism is searched if requested, and by default only for long sequences") {
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
  space.asked[Setting::kCp] = {2, 8};
  CHECK(degrees() == std::set<std::int64_t>{2, 8});
  scenario.model.seq = 136;  // 8 divides it, 16 does not
  CHECK(degrees() == std::set<std::int64_t>{2});
}

TEST_CASE("GPU counts beyond the cluster are refused") {
  const Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.global_batch = 16;
  for (const std::int64_t gpus : {0, 5, 33, 64}) {
    space.gpus = gpus;
    CHECK_FALSE(search(scenario, space, 1, {}).ok());
  }
}

TEST_CASE("plans that the stack cannot run are counted and not returned") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 16;
  const auto all = search(scenario, space, 1, {});
  scenario.stack.choices.only[Setting::kRankOrder] = numbers(RankOrder::kTpDpPp);
  scenario.stack.choices.only[Setting::kRecompute] = numbers(Recompute::kNone, Recompute::kFull);
  enumerate_plans(scenario, space,
                  [&](const Plan& plan) { CHECK(check_plan(scenario, plan).ok()); });
  const auto fewer = search(scenario, space, 1, {});
  REQUIRE(all.ok());
  REQUIRE(fewer.ok());
  CHECK(fewer->considered == all->considered);
  CHECK(fewer->pruned.at("the stack does not support this rank order") > 0);
  CHECK(fewer->pruned.at("the stack does not support this recompute") > 0);
  Plan plan = fewer->plans.front().plan;
  plan.rank_order = RankOrder::kTpPpDp;
  CHECK_FALSE(check_plan(scenario, plan).ok());
}

TEST_CASE("an offloaded optimizer is searched if nothing fits without it, or if requested") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 1;
  space.global_batch = 4;
  const auto roomy = search(scenario, space, 3, {});
  REQUIRE(roomy.ok());
  for (const PlannedRun& run : roomy->plans) CHECK(run.plan.offload == Offload::kNone);
  Bytes least = roomy->plans.front().predicted.peak;
  space.objective = Objective::kMemory;
  least = search(scenario, space, 1, {})->plans.front().predicted.peak;
  space.objective = Objective::kTime;
  scenario.profile.device.memory = 0.9 * least;
  const auto tight = search(scenario, space, 3, {});
  REQUIRE(tight.ok());
  REQUIRE_FALSE(tight->plans.empty());
  for (const PlannedRun& run : tight->plans) CHECK(run.plan.offload == Offload::kOptimizer);
  space.asked[Setting::kOffload] = numbers(Offload::kNone);
  CHECK(search(scenario, space, 1, {})->plans.empty());
  space.asked[Setting::kOffload] = {};
  space.excluded = {{Setting::kOffload, static_cast<std::int64_t>(Offload::kOptimizer)}};
  CHECK(search(scenario, space, 1, {})->plans.empty());
}

TEST_CASE("the parts of a space that find the goal of a search have plans of the space alone") {
  const Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 4;
  space.global_batch = 8;
  space.uneven_ends = 1;
  const auto plans_of = [&](const SearchSpace& one) {
    std::vector<Plan> plans;
    enumerate_plans(scenario, one, [&](const Plan& plan) { plans.push_back(plan); });
    return plans;
  };
  const std::vector<Plan> all = plans_of(space);
  for (const LikelyPart kind :
       {LikelyPart::kFewLayouts, LikelyPart::kOneSequence, LikelyPart::kFourSequences}) {
    const std::vector<Plan> part = plans_of(likely_part(scenario, space, kind));
    REQUIRE_FALSE(part.empty());
    CHECK(2 * part.size() < all.size());
    const std::int64_t most = kind == LikelyPart::kFourSequences ? 4 : 1;
    CHECK(std::all_of(part.begin(), part.end(), [&](const Plan& plan) {
      return plan.micro_batch <= most && contains(all, plan);
    }));
    SearchSpace asked = space;
    asked.asked[Setting::kZero] = {3};  // a requested value stays
    for (const Plan& plan : plans_of(likely_part(scenario, asked, kind))) CHECK(plan.zero == 3);
  }
}

}  // namespace tpsim
