// Intervals from unstated inputs: every command that predicts a plan prints the same interval.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <utility>

#include "app/scenario/open_inputs.h"
#include "cli/options/inputs.h"
#include "core/scenario/plan_json.h"
#include "sim/step/interval.h"
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
  const GivenOptions one = {{opt_of(StackPart::kCudaGraphs), "full_iteration"}};
  for (const GivenOptions& parts :
       {GivenOptions{}, one, with(one, {{opt_of(StackPart::kLossHead), "gathered"}}),
        GivenOptions{{opt_of(StackPart::kMasterWeights), "none"}}}) {
    const SimulatedPlan open = simulated(with(plan, parts));
    REQUIRE(open.named.assumed.open.size() == 1);
    const OpenChoice& software = open.named.assumed.open.front();
    // log(step with the other stack / step with the assumed one), both with these parts.
    const auto distance = [&](const std::string& name, const GivenOptions& with_parts) {
      const GivenOptions given = with(plan, with_parts);
      const auto other = simulate_answer(
          arguments_of(Command::kSimulate, with(given, {{Opt("--stack"), name}})), std::nullopt);
      const double taken = simulated(given).run.predicted.step.value();
      return other.ok() ? std::optional(std::log(other->run.predicted.step.value() / taken))
                        : std::nullopt;
    };
    // Sums of squares on the slow and the fast side, without and with the parts.
    StepSpreads before, after;
    std::int64_t others = 0;
    const auto add = [](double away, StepSpreads& to) {
      (away > 0 ? to.slower : to.faster) += away * away;
    };
    for (const std::string& name : catalogue.list(CatalogueKind::kStacks)) {
      if (name == open.named.stack || catalogue.load_stack(name)->aliases.empty()) continue;
      const std::optional<double> unstated = distance(name, {});
      if (!unstated) continue;
      double away = *unstated;
      for (const auto& part : parts) {
        if (*unstated == 0) continue;
        const double left = distance(name, {part}).value_or(0) / *unstated;
        away *= std::clamp(left, 0.0, 1.0);
      }
      add(*unstated, before);
      add(away, after);
      ++others;
    }
    CHECK(software.others == others);
    const auto own = [&](const GivenOptions& with_parts) {
      const GivenOptions given = with(plan, with_parts);
      return spreads_of(simulated(with(given, {{Opt("--stack"), open.named.stack}})).run.predicted);
    };
    const auto expected = [&](double StepSpreads::*side) {
      const auto count = static_cast<double>(others + 1);
      const double grown = std::pow(own(parts).*side, 2) - std::pow(own({}).*side, 2);
      const double most = grown > 0 ? std::max(0.0, before.*side / count - grown) : 1e9;
      return std::sqrt(std::min(after.*side / count, most));
    };
    CHECK(software.slower == Approx(expected(&StepSpreads::slower)));
    CHECK(software.faster == Approx(expected(&StepSpreads::faster)));
  }
}

TEST_CASE("stating a part that differs from the assumed stack's does not widen the interval") {
  const GivenOptions plan = with(kMixture, {{opt_of(Setting::kDp), "16"},
                                            {opt_of(Setting::kEp), "8"},
                                            {opt_of(Setting::kGlobalBatch), "128"},
                                            {Opt("--ignore-stack-limits"), ""}});
  const SimulatedPlan unstated = simulated(plan);
  for (const auto& [part, value] : {std::pair{StackPart::kDispatcher, "deepep"},
                                    {StackPart::kDataParallelSync, "owners"},
                                    {StackPart::kPermute, "unfused"},
                                    {StackPart::kCudaGraphs, "attn"}}) {
    const SimulatedPlan stated = simulated(with(plan, {{opt_of(part), value}}));
    INFO(row_of(part).key);
    REQUIRE(stated.named.assumed.open.size() == 1);
    CHECK(stated.named.assumed.half_width_all_open <=
          std::max(unstated.named.assumed.half_width_all_open,
                   stated.named.assumed.half_width_all_stated) +
              1e-9);
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
