// Comparison of plans, sensitivities and the shape linter: their numbers are predictions and add
// up.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/scenario/catalogue.h"
#include "plans/questions/precision_break_even.h"
#include "plans/questions/shape_advice.h"
#include "plans/questions/what_if.h"
#include "plans/questions/why_not.h"
#include "plans/search/certificate.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

SearchSpace space_of(std::int64_t gpus) {
  SearchSpace space;
  space.gpus = gpus;
  space.global_batch = 16;
  return space;
}

Scenario with_memory(double gib) {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.profile.device.memory = Bytes(gib * kGiB);
  return scenario;
}

}  // namespace

TEST_CASE("settings read back as written") {
  const auto values = parse_settings("tp=8,micro-batch=2,recompute=full,sequence-parallel=on");
  REQUIRE(values.ok());
  CHECK(to_string(*values) == "tp=8,micro-batch=2,recompute=full,sequence-parallel=on");
  for (const char* wrong : {"tp", "tp=", "tp=0", "tp=x", "zero=4", "tq=1", "recompute=some", ""}) {
    INFO(wrong);
    CHECK_FALSE(parse_settings(wrong).ok());
  }
  CHECK(parse_settings("recompute=ful").error().hint.find("full") != std::string::npos);
}

TEST_CASE("the waterfall against the best plan adds up") {
  const Scenario scenario = with_memory(16);
  for (const char* asked : {"tp=4", "pp=2,zero=1", "micro-batch=4,recompute=full"}) {
    const auto answer = why_not(scenario, space_of(8), {*parse_settings(asked), {}});
    REQUIRE(answer.ok());
    REQUIRE(answer->other.has_value());
    Seconds sum;
    for (const TermDifference& term : answer->waterfall) sum += term.difference();
    const Seconds difference = answer->other->predicted.step - answer->best.predicted.step;
    INFO(asked);
    CHECK(difference >= Seconds());
    CHECK(sum.value() == Approx(difference.value()).margin(1e-12));
    for (const SettingValue& value : answer->asked.settings) {
      CHECK(setting_of(answer->other->plan, value.setting) == value);
    }
  }
}

TEST_CASE("a plan that does not fit is reported with its margin and fixes that fit") {
  const Scenario scenario = with_memory(0.25);
  const auto asked = *parse_settings("tp=1,pp=1,zero=0,recompute=none");
  SearchSpace space = space_of(8);
  space.asked[Setting::kOffload] = {static_cast<std::int64_t>(Offload::kNone)};
  const auto answer = why_not(scenario, space, {asked, {}});
  REQUIRE(answer.ok());
  CHECK_FALSE(answer->other.has_value());
  REQUIRE(answer->nearest_miss.has_value());
  CHECK(answer->nearest_miss->predicted.peak > scenario.profile.device.memory);
  REQUIRE_FALSE(answer->fixes.empty());
  for (const Fix& fix : answer->fixes) {
    CHECK(fix.given_up.settings.size() == answer->fixes.front().given_up.settings.size());
    CHECK(fix.run.predicted.peak <= scenario.profile.device.memory);
    for (const SettingValue& value : asked) {
      const bool kept = std::find(fix.given_up.settings.begin(), fix.given_up.settings.end(),
                                  value) == fix.given_up.settings.end();
      if (kept) CHECK(setting_of(fix.run.plan, value.setting) == value);
    }
  }
}

TEST_CASE("requested parts are compared as requested settings are") {
  const Scenario scenario = with_memory(16);
  const PartValues torch{{StackPart::kNormKernel, static_cast<std::int64_t>(KernelFusion::kTorch)}};
  Scenario changed = scenario;
  changed.stack = with_parts(changed.stack, torch);
  const auto answer = why_not(scenario, space_of(8), {*parse_settings("tp=4"), torch});
  REQUIRE(answer.ok());
  REQUIRE(answer->other.has_value());
  SearchSpace asked = space_of(8);
  asked.asked[Setting::kTp] = {4};
  const SearchResult best = search(changed, asked, 1, {}).value();
  CHECK(answer->other->predicted.step == best.plans.front().predicted.step);
  CHECK(answer->best.predicted.step ==
        search(scenario, space_of(8), 1, {}).value().plans.front().predicted.step);
  CHECK(to_string(answer->asked) == "tp=4,norm_kernel=torch");
}

TEST_CASE("illegal settings are reported with the reason") {
  const auto answer = why_not(with_memory(16), space_of(8), {*parse_settings("tp=8,pp=4"), {}});
  REQUIRE(answer.ok());
  CHECK_FALSE(answer->illegal.empty());
  CHECK_FALSE(answer->fixes.empty());
}

TEST_CASE("a degree that does not divide is named with the nearest ones that do") {
  const auto illegal = [](const ModelSpec& model, const char* asked) {
    Scenario scenario = test::small_scenario(model);
    scenario.profile.device.memory = Bytes(16 * kGiB);
    return why_not(scenario, space_of(8), {*parse_settings(asked), {}}).value().illegal;
  };
  CHECK(illegal(test::small_bloom(), "tp=3") == "tp = 3 does not divide 8 GPUs (nearest: 2, 4)");
  CHECK(illegal(test::small_bloom(), "tp=8,pp=4") ==
        "tp x pp = 32 does not divide 8 GPUs (nearest: 8)");
  CHECK(illegal(test::small_bloom(), "tp=2,pp=1,dp=2,cp=1") ==
        "tp x pp x dp x cp = 4, but the product must be 8 GPUs");
  CHECK_THAT(illegal(test::small_bloom(), "micro-batch=5"),
             Catch::Contains("micro-batch = 5 does not divide the"));
  CHECK_THAT(illegal(test::small_bloom(), "dp=4,micro-batch=5"),
             Catch::Contains("sequences of a data-parallel rank"));
  const ModelSpec experts = test::small_mixture();
  CHECK_THAT(illegal(experts, "ep=3"),
             Catch::Contains("ep = 3 does not divide the") && Catch::Contains("nearest: 2, 4"));
}

TEST_CASE("among a launcher's rules, the one that combinations reach last is named") {
  Scenario scenario = test::small_scenario(test::small_llama());
  scenario.stack.launcher = Launcher::kTorchTitan;
  const auto answer = why_not(scenario, space_of(8), {*parse_settings("gradient-dtype=bf16"), {}});
  CHECK_THAT(answer.value().illegal, Catch::Contains("gradient accumulation below fp32"));
}

TEST_CASE("the progress of a search starts at its bounds and never decreases") {
  std::vector<double> shares;
  const auto found =
      search(with_memory(16), space_of(8), 1, [&](double share) { shares.push_back(share); });
  REQUIRE(found.ok());
  REQUIRE(shares.size() > 2);
  CHECK(shares.front() < 0.5);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.back() <= 1);
}

TEST_CASE("memory unlocks a plan at its break-even point and not below") {
  const SearchSpace space = space_of(8);
  Scenario scenario = with_memory(16);
  const auto unlimited = search(scenario, space, 1, {});
  REQUIRE(unlimited.ok());
  scenario.profile.device.memory = 0.6 * unlimited->plans.front().predicted.peak;
  const auto points = memory_break_evens(scenario, space, 2);
  REQUIRE(points.ok());
  REQUIRE_FALSE(points->empty());
  for (const MemoryBreakEven& point : *points) {
    const auto best_step = [&](double factor) {
      Scenario other = scenario;
      other.profile.device.memory = factor * point.memory;
      const auto found = search(other, space, 1, {});
      REQUIRE(found.ok());
      REQUIRE_FALSE(found->plans.empty());
      return found->plans.front().predicted.step;
    };
    CHECK(best_step(1 + 1e-9) <= point.run.predicted.step);
    CHECK(best_step(1 - 1e-6) > point.run.predicted.step);
  }
}

TEST_CASE("if nothing fits, memory unlocks one plan, without a gain") {
  const SearchSpace space = space_of(8);
  Scenario scenario = with_memory(16);
  scenario.profile.device.memory = Bytes(1);
  const auto miss = search(scenario, space, 1, {});
  REQUIRE(miss.ok());
  REQUIRE(miss->plans.empty());
  scenario.profile.device.memory = 0.9 * miss->nearest_miss->predicted.peak;
  REQUIRE(search(scenario, space, 1, {})->plans.empty());
  const auto points = memory_break_evens(scenario, space, 2);
  REQUIRE(points.ok());
  REQUIRE(points->size() == 1);
  CHECK_FALSE(points->front().gain.has_value());
  scenario.profile.device.memory = (1 + 1e-9) * points->front().memory;
  CHECK_FALSE(search(scenario, space, 1, {})->plans.empty());
}

TEST_CASE("another plan is best beyond a break-even point and the same before") {
  Scenario scenario = with_memory(16);
  const SearchSpace space = space_of(16);
  const auto points = plan_break_evens(scenario, space);
  REQUIRE(points.ok());
  REQUIRE_FALSE(points->empty());
  for (const PlanBreakEven& point : *points) {
    const double back = point.factor > 1 ? 0.998 : 1.002;
    const auto best_at = [&](double factor) {
      const auto found = search(with_constant(scenario, point.constant, factor), space, 1, {});
      REQUIRE(found.ok());
      return found->plans.front().plan;
    };
    INFO(name_of(point.constant) << " x " << point.factor);
    CHECK(best_at(point.factor) == point.after);
    CHECK(best_at(back * point.factor) == point.before);
  }
}

TEST_CASE("a faster constant never slows a step, and more host time or jitter never speeds it") {
  Scenario scenario = with_memory(16);
  scenario.stack.rank_jitter = 0.01;
  const Plan plan = test::plan_of(scenario.model, {2, 2, 4, 1}, 8);
  const std::vector<Sensitivity> all = sensitivities(scenario, plan);
  CHECK(all.size() == kConstantCount);
  for (const Sensitivity& one : all) {
    const bool costs = one.constant == Constant::kHost || one.constant == Constant::kLatency ||
                       one.constant == Constant::kJitter;
    INFO(name_of(one.constant));
    CHECK((costs ? one.change >= 0 : one.change <= 0));
    CHECK(simulate(with_constant(scenario, one.constant, kNudge), plan)->step == one.step);
  }
}

TEST_CASE("a recipe pays from its break-even width on, and later with slower memory") {
  const Catalogue catalogue(std::string(TPSIM_SOURCE_DIR) + "/data");
  Scenario scenario;
  scenario.model = *catalogue.load_model("llama-3-8b");
  scenario.cluster = *catalogue.load_cluster("dgx-h100");
  scenario.profile = *catalogue.load_profile("h100-sxm");
  scenario.stack = *catalogue.load_stack("nemo");
  Plan plan = test::plan_of(scenario.model, {2, 1, 4, 1}, 8);
  plan.dtype = DType::kBFloat16;
  plan.attention = AttentionKind::kFlash;
  const auto all = precision_break_evens(scenario, plan);
  REQUIRE(all.size() == 3);  // Hopper supports neither mxfp8 nor nvfp4
  const auto gain_at = [&](const PrecisionBreakEven& one, std::int64_t width) {
    Scenario other = scenario;
    other.model = with_width(scenario.model, width, plan.degrees.tp);
    for (const PrecisionBreakEven& there : precision_break_evens(other, plan)) {
      if (there.precision == one.precision) return there.gain;
    }
    return 0.0;
  };
  for (const PrecisionBreakEven& one : all) {
    INFO(name_of(one.precision) << " from " << one.width);
    REQUIRE(one.width > 128);
    CHECK(gain_at(one, one.width) > 0);
    CHECK(gain_at(one, one.width - 128) <= 0);
  }
  const Scenario slower = with_constant(scenario, Constant::kMemoryBandwidth, 0.5);
  CHECK(precision_break_evens(slower, plan)[0].width >= all[0].width);
  plan.dtype = DType::kFloat16;
  CHECK(precision_break_evens(scenario, plan).empty());
}

TEST_CASE("the linter finds heads that miss alignment and names better ones") {
  Scenario scenario = with_memory(16);
  scenario.model = with_heads(scenario.model, 128);  // head_dim 4
  const std::vector<ShapeFinding> findings =
      shape_findings(scenario, test::plan_of(scenario.model, {2, 1, 1, 1}, 4));
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().what.find("head_dim 4") != std::string::npos);
  REQUIRE_FALSE(findings.front().better.empty());
  for (const ShapeFinding::Better& better : findings.front().better) {
    CHECK(better.gain >= 0.01);
    CHECK(validate(better.change.model).ok());
  }
}

TEST_CASE("the hash of the inputs changes exactly if an input changes") {
  const Scenario scenario = with_memory(16);
  const SearchSpace space = space_of(8);
  const std::uint64_t hash = inputs_hash(scenario, space);
  CHECK(inputs_hash(scenario, space) == hash);
  SearchSpace narrower = space;
  narrower.excluded = {{Setting::kZero, 3}};
  CHECK(inputs_hash(scenario, narrower) != hash);
  for (const Constant constant : {Constant::kNicBandwidth, Constant::kHost, Constant::kFlops}) {
    CHECK(inputs_hash(with_constant(scenario, constant, 1.1), space) != hash);
  }
}

}  // namespace tpsim
