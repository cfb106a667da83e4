// Intervals from unstated inputs: every command that predicts a plan prints the same interval.
#include <catch2/catch.hpp>
#include <cmath>

#include "app/scenario/open_inputs.h"
#include "cli/options/inputs.h"
#include "core/scenario/plan_json.h"
#include "tests/cli/golden_plans.h"
#include "tests/cli/typed_answers.h"

namespace tpsim::cli {
namespace {

using test::arguments_of;
using test::GivenOptions;

struct Width {
  double low = 0, high = 0;
};
Width width_of(const Prediction& p) { return {p.step_low / p.step, p.step_high / p.step}; }

SimulatedPlan simulated(const GivenOptions& given) {
  return simulate_answer(arguments_of(Command::kSimulate, given), std::nullopt).value();
}

const GivenOptions kMixture = {{Opt("--model"), "mixtral-8x7b"},
                               {Opt("--cluster"), "dgx-h100"},
                               {opt_of(Setting::kGlobalBatch), "64"}};

GivenOptions with(GivenOptions given, const GivenOptions& more) {
  given.insert(given.end(), more.begin(), more.end());
  return given;
}

}  // namespace

TEST_CASE("each plan that a search lists has the interval that simulating it prints") {
  const Arguments arguments =
      arguments_of(Command::kPlan, with(kMixture, {{Opt("--gpus"), "16"},
                                                   {opt_of(Setting::kTp), "1,2"},
                                                   {opt_of(Setting::kZero), "1"},
                                                   {opt_of(Setting::kMicroBatch), "1"}}));
  NamedScenario named = load_scenario(arguments, std::nullopt).value();
  const SearchSpace space = search_space(arguments, named.scenario, std::nullopt).value();
  for (const int threads : {1, 3}) {
    SearchResult found = search(named.scenario, space, 6, {}).value();
    REQUIRE(found.plans.size() > 3);
    REQUIRE(widen_intervals(named, found.plans, threads).ok());
    REQUIRE(named.assumed.open.size() == 1);
    for (const PlannedRun& run : found.plans) {
      GivenOptions given = kMixture;
      for (const SettingRow& row : setting_rows()) {
        if (row.counts_for == nullptr) {
          given.emplace_back(opt_of(row.setting), text_of(run.plan, row.setting));
        }
      }
      const SimulatedPlan alone = simulated(given);
      INFO(short_name(run.plan));
      REQUIRE(alone.run.plan == run.plan);
      CHECK(alone.run.predicted.step == run.predicted.step);
      CHECK(alone.run.predicted.step_low == run.predicted.step_low);
      CHECK(alone.run.predicted.step_high == run.predicted.step_high);
    }
  }
}

TEST_CASE("a campaign has the interval of its plan's step") {
  for (const bool states_stack : {false, true}) {
    GivenOptions given = with(kMixture, {{opt_of(Setting::kDp), "16"},
                                         {opt_of(Setting::kEp), "8"},
                                         {opt_of(Setting::kGlobalBatch), "128"}});
    if (states_stack) given.emplace_back(Opt("--stack"), "nemo");
    const Width step = width_of(simulated(given).run.predicted);
    given.emplace_back(Opt("--tokens"), "100B");
    given.emplace_back(Opt("--replays"), "10");
    given.emplace_back(Opt("--allow-oom"), "");
    const CampaignReport report =
        campaign_answer(arguments_of(Command::kCampaign, given), std::nullopt).value();
    // The other parts of the wall time grow with the steps.
    const Campaign& campaign = report.campaign;
    const Seconds later = campaign.wall_high - campaign.time.wall();
    const Seconds sooner = campaign.time.wall() - campaign.wall_low;
    CHECK(later / sooner == Approx((step.high - 1) / (1 - step.low)));
    CHECK(later / campaign.time.wall() == Approx(step.high - 1).epsilon(0.1));
    CHECK(report.named.assumed.open.empty() == states_stack);
  }
}

TEST_CASE("the spread over other software equals that of predictions with each stack") {
  const GivenOptions plan = {{Opt("--model"), "llama-3.2-1b"},
                             {Opt("--cluster"), "hgx-h200"},
                             {opt_of(Setting::kDp), "4"},
                             {opt_of(Setting::kTp), "2"},
                             {opt_of(Setting::kSequenceParallel), "on"},
                             {opt_of(Setting::kZero), "1"},
                             {opt_of(Setting::kGlobalBatch), "32"}};
  const Catalogue catalogue = Catalogue::open().value();
  for (const GivenOptions& parts :
       {GivenOptions{}, GivenOptions{{opt_of(StackPart::kCudaGraphs), "full_iteration"}}}) {
    const GivenOptions given = with(plan, parts);
    const SimulatedPlan open = simulated(given);
    REQUIRE(open.named.assumed.open.size() == 1);
    const OpenChoice& software = open.named.assumed.open.front();
    double slower = 0, faster = 0;
    std::int64_t others = 0;
    for (const std::string& name : catalogue.list(CatalogueKind::kStacks)) {
      if (name == open.named.stack || catalogue.load_stack(name)->aliases.empty()) continue;
      const auto other = simulate_answer(
          arguments_of(Command::kSimulate, with(given, {{Opt("--stack"), name}})), std::nullopt);
      if (!other.ok()) continue;
      const double away = std::log(other->run.predicted.step / open.run.predicted.step);
      (away > 0 ? slower : faster) += away * away;
      ++others;
    }
    CHECK(software.others == others);
    const auto count = static_cast<double>(others + 1);
    CHECK(software.slower == Approx(std::sqrt(slower / count)));
    CHECK(software.faster == Approx(std::sqrt(faster / count)));
  }
}

TEST_CASE("settings that change nothing in a plan do not change its interval") {
  const GivenOptions one_node = with(kMixture, {{opt_of(Setting::kTp), "2"},
                                                {opt_of(Setting::kPp), "2"},
                                                {opt_of(Setting::kDp), "2"},
                                                {opt_of(Setting::kSequenceParallel), "on"},
                                                {Opt("--ignore-stack-limits"), ""}});
  const auto same = [&](Setting setting, const GivenOptions& base, const char* a, const char* b) {
    const Prediction one = simulated(with(base, {{opt_of(setting), a}})).run.predicted;
    const Prediction other = simulated(with(base, {{opt_of(setting), b}})).run.predicted;
    INFO(row_of(setting).title);
    CHECK(one.step.value() == Approx(other.step.value()));
    CHECK(one.step_low.value() == Approx(other.step_low.value()));
    CHECK(one.step_high.value() == Approx(other.step_high.value()));
  };
  same(Setting::kRankOrder, one_node, "tp-dp-pp", "tp-pp-dp");
  const GivenOptions alone = {{Opt("--model"), "llama-2-7b"},
                              {Opt("--cluster"), "dgx-h100"},
                              {opt_of(Setting::kTp), "8"},
                              {Opt("--ignore-stack-limits"), ""}};
  same(Setting::kZero, alone, "0", "1");
}

TEST_CASE("an interval with many open inputs begins above zero") {
  const SimulatedPlan wide = simulated({{Opt("--model"), "bloom-3b"},
                                        {Opt("--cluster"), "jean-zay-a100-before-numa-fix"},
                                        {opt_of(Setting::kTp), "2"}});
  REQUIRE_FALSE(wide.named.assumed.open.empty());
  CHECK(wide.run.predicted.step_low.value() > 0);
}

}  // namespace tpsim::cli
