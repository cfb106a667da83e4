// Campaigns with a deadline and a budget: the chosen size, and the answer if there is none.
#include "campaigns/goals.h"

#include <catch2/catch.hpp>

#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

constexpr double kDay = 24 * 3600;

struct Case {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  CampaignRequest request;
  Assumptions assumptions;
  CampaignGoal goal;

  Case() {
    scenario.cluster.nodes = 64;
    space.global_batch = 512;
    space.asked[Setting::kPp] = {1};  // a short search
    request.tokens = 2e13;
    request.replays = 50;
    for (const AssumptionRow& row : assumption_rows()) {
      assumptions.set(row.assumption, std::max(1.0, row.least), "test");
    }
    assumptions.set(Assumption::kNodeMtbf, 5000, "test");
    assumptions.set(Assumption::kPrice, 2, "test");
    assumptions.set(Assumption::kSpareNodes, 0, "");
  }

  GoalAnswer answer(const std::vector<std::int64_t>& sizes = {4, 8, 16, 32, 64}) const {
    const auto found = plan_for_goal(scenario, space, sizes, request, assumptions, goal, 1, {});
    if (!found.ok()) FAIL(to_string(found.error()));
    return *found;
  }
};

// The campaign of each size. An impossible deadline excludes no size.
std::vector<Campaign> all_campaigns(Case c) {
  c.goal.deadline = Seconds(1);
  std::vector<Campaign> campaigns;
  for (const GoalSize& size : c.answer().sizes) campaigns.push_back(size.campaign.value());
  return campaigns;
}

}  // namespace

TEST_CASE("sizes are whole hosts, from the smallest that reaches the goal at peak FLOP/s") {
  Case c;
  const std::vector<std::int64_t> all = goal_sizes(c.scenario, {}, {}, 1e12);
  CHECK(all == std::vector<std::int64_t>{4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256});
  CampaignGoal goal;
  goal.deadline = Seconds(kDay);
  const std::vector<std::int64_t> some = goal_sizes(c.scenario, {}, goal, 1e13);
  REQUIRE(some.size() < all.size());
  CHECK(std::equal(some.rbegin(), some.rend(), all.rbegin()));
  CHECK(goal_sizes(c.scenario, {}, goal, 1e20) == all);  // for the nearest miss
}

TEST_CASE("the cheapest size meets a deadline at the upper end of its interval") {
  Case c;
  const std::vector<Campaign> campaigns = all_campaigns(c);
  REQUIRE(campaigns.size() == 5);
  c.goal.deadline = campaigns[2].wall_high * 1.05;
  const GoalAnswer answer = c.answer();
  REQUIRE(answer.chosen);
  const GoalSize& chosen = answer.sizes[*answer.chosen];
  CHECK(chosen.standing == GoalStanding::kSure);
  CHECK(chosen.campaign->wall_high <= c.goal.deadline);
  for (const GoalSize& size : answer.sizes) {
    if (size.standing == GoalStanding::kSure) {
      CHECK(chosen.campaign->cost.usd <= size.campaign->cost.usd);
    }
  }
}

TEST_CASE("a size that meets a goal only as predicted is chosen if no size meets it for certain") {
  Case c;
  const std::vector<Campaign> campaigns = all_campaigns(c);
  c.goal.deadline = (campaigns[4].time.wall() + campaigns[4].wall_high) * 0.5;
  c.scenario.cluster.nodes = 16;
  const GoalAnswer answer = c.answer();
  REQUIRE(answer.chosen);
  CHECK(answer.sizes[*answer.chosen].standing == GoalStanding::kAsPredicted);
  CHECK_FALSE(answer.nearest);
}

TEST_CASE("a budget without deadline gives the shortest run, or none if too small") {
  Case c;
  const std::vector<Campaign> campaigns = all_campaigns(c);
  c.goal.budget = campaigns[3].cost.usd * 1.5;
  const GoalAnswer answer = c.answer();
  REQUIRE(answer.chosen);
  const GoalSize& chosen = answer.sizes[*answer.chosen];
  CHECK(chosen.campaign->cost.usd <= c.goal.budget);
  for (const GoalSize& size : answer.sizes) {
    if (size.standing == chosen.standing) {
      CHECK(chosen.campaign->time.wall() <= size.campaign->time.wall());
    }
  }
  c.goal.budget = 1;
  const GoalAnswer none = c.answer();
  CHECK_FALSE(none.chosen);
  REQUIRE(none.nearest);
  for (const GoalSize& size : none.sizes) {
    CHECK(none.sizes[*none.nearest].campaign->cost.usd <= size.campaign->cost.usd);
  }
}

TEST_CASE("sizes beyond the cluster are reported, and are an error if all are") {
  Case c;
  c.goal.deadline = Seconds(1e9);
  const GoalAnswer answer = c.answer({8, 4096});
  REQUIRE(answer.sizes.size() == 2);
  CHECK(answer.chosen == 0U);
  CHECK_THAT(answer.sizes[1].why_none, Catch::Contains("GPUs"));
  CHECK_FALSE(
      plan_for_goal(c.scenario, c.space, {4096}, c.request, c.assumptions, c.goal, 1, {}).ok());
}

namespace {

FailureModel model_of(double work_days, double interval_h, double stop_s, double mtbf_h) {
  FailureModel model;
  model.work = Seconds(work_days * kDay);
  model.interval = Seconds(interval_h * 3600);
  model.write = Seconds(stop_s);
  model.restart = Seconds(1800);
  model.mtbf = Seconds(mtbf_h * 3600);
  return model;
}

}  // namespace

TEST_CASE("async checkpoints: the closed form agrees with replays, and so does the best interval") {
  FailureModel model = GENERATE(values<FailureModel>({
      model_of(107, 3, 5, 112), model_of(54, 0.5, 5, 3.1), model_of(10, 1, 60, 2),
      model_of(0.1, 24, 60, 1),    // one segment
      model_of(2.02, 0.7, 60, 5),  // the last segment is shorter than the async write
  }));
  model.behind = Seconds(2000);
  const Replays replays = replay_campaigns(model, {1 << 30, Seconds(kDay)}, 20'000, 11);
  INFO(expected_wall(model).value() << " s, replayed " << replays.mean.value() << " s");
  CHECK(std::abs((replays.mean - expected_wall(model)).value()) <
        4 * replays.standard_error.value());
  FailureModel endless = model;
  endless.work = Seconds(1e10);
  const auto wall = [&](double factor) {
    endless.interval = factor * best_interval(model.write, model.mtbf);
    return expected_wall(endless);
  };
  CHECK(wall(1.0) <= wall(0.8));
  CHECK(wall(1.0) <= wall(1.25));
  FailureModel sync = model;
  sync.write += sync.behind;
  sync.behind = Seconds();
  // The write of a single segment is exposed for both kinds.
  CHECK(expected_wall(sync) > 0.9999 * expected_wall(model));
}

TEST_CASE("async checkpoints stop the run for less, and are refused where hosts cannot hold them") {
  const ModelSpec model = test::small_bloom();
  Scenario scenario = test::small_scenario(model);
  const Plan plan = test::plan_of(model, {.tp = 2, .pp = 2, .dp = 4}, 4);
  Case c;
  c.request.tokens = 1e12;
  c.request.step = Seconds(10);
  c.assumptions.set(Assumption::kStorageBandwidth, 0.01, "test");
  const auto sync = plan_campaign(scenario, plan, c.request, c.assumptions);
  c.request.checkpoints = CheckpointKind::kAsync;
  const auto async = plan_campaign(scenario, plan, c.request, c.assumptions);
  REQUIRE((sync.ok() && async.ok()));
  CHECK(sync->checkpoints.stop == sync->checkpoints.write);
  CHECK(async->checkpoints.write == sync->checkpoints.write);
  CHECK(async->checkpoints.stop < 0.1 * async->checkpoints.write);
  CHECK(async->checkpoints.interval + async->checkpoints.stop >= async->checkpoints.write);
  CHECK(async->time.wall() < sync->time.wall());
  c.request.checkpoint_interval = async->checkpoints.write * 0.5;
  CHECK_FALSE(plan_campaign(scenario, plan, c.request, c.assumptions).ok());
  c.request.checkpoint_interval = Seconds();
  scenario.cluster.host.memory = Bytes(1e6);
  const auto none = plan_campaign(scenario, plan, c.request, c.assumptions);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == ErrorKind::kDoesNotFit);
}

}  // namespace tpsim
