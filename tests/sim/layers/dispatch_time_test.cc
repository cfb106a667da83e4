// Laws of expert prices apart from GEMMs: dispatch, load, permute and host time.
#include "sim/layers/dispatch_time.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "core/plan/report.h"
#include "core/scenario/catalogue.h"
#include "kernels/slow/slow_device.h"
#include "lowering/passes/expert_load.h"
#include "sim/step/simulate.h"
#include "tests/sim/with_parts.h"

namespace tpsim {
namespace {

using test::with;

// Mean over all choices of k experts: the number of parts that hold a chosen expert.
double parts_of_all_choices(std::int64_t count, std::int64_t per_token, std::int64_t parts) {
  double reached = 0, choices = 0;
  for (std::uint32_t set = 0; set < 1U << count; ++set) {
    if (std::popcount(set) != per_token) continue;
    ++choices;
    const std::int64_t each = count / parts;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::uint32_t experts = ((1U << each) - 1) << (part * each);
      if ((set & experts) != 0) ++reached;
    }
  }
  return reached / choices;
}

// Returns the experts that the reference model's router chooses for tokens with random logits.
std::vector<std::int32_t> routed(const ExpertShape& experts, std::int64_t tokens) {
  SlowDevice device;
  const auto allocate = [&](Shape shape, DType dtype) {
    return device.allocate(shape, dtype, MemoryCategory::kActivations, "router");
  };
  const Shape choices{tokens, experts.per_token};
  const Tensor logits = allocate({tokens, experts.count}, DType::kFloat32);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (double& value : device.values(logits)) value = normal(random);
  const Tensor chosen = allocate(choices, DType::kInt32);
  device.run(RouteForward{logits, allocate(choices, DType::kFloat32), chosen,
                          allocate(choices, DType::kInt32),
                          allocate({experts.count, tokens}, DType::kInt32), experts.router,
                          Tensor(), Label{ModelPart::kRouter, "router"}});
  const std::span<const double> values = device.values(chosen);
  return {values.begin(), values.end()};
}

struct Sent {
  double copies = 0;  // choices on other ranks
  double places = 0;  // other ranks that hold a choice, per token
};

// Tokens belong to the ranks in turn, and each rank has consecutive experts.
Sent sent_by(std::span<const std::int32_t> chosen, const ExpertShape& experts, std::int64_t tokens,
             std::int64_t ranks) {
  const std::int64_t each = experts.count / ranks;
  Sent sent;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t own = token % ranks;
    std::set<std::int64_t> places;
    for (std::int64_t k = 0; k < experts.per_token; ++k) {
      const auto at = static_cast<std::size_t>(token * experts.per_token + k);
      const std::int64_t rank = chosen[at] / each;
      if (rank == own) continue;
      sent.copies += 1;
      places.insert(rank);
    }
    sent.places += static_cast<double>(places.size());
  }
  return sent;
}

PartValues one(StackPart part, std::string_view text) {
  return {{part, parse_value(row_of(part), text).value()}};
}

Scenario mixture_scenario() {
  Scenario scenario = test::small_scenario(test::small_mixture());
  scenario.model.experts.dropless = true;
  scenario.cluster.gpus_per_node = 2;
  scenario.cluster.nics_per_node = 2;
  return scenario;
}

Plan mixture_plan(const ModelSpec& model) {
  Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 4, .cp = 1, .ep = 4}, 8);
  plan.recompute = Recompute::kNone;
  plan.attention = AttentionKind::kFlash;
  return plan;
}

}  // namespace

TEST_CASE("the number of ranks that a token reaches is the hypergeometric mean") {
  for (const std::int64_t count : {4, 8, 12}) {
    for (std::int64_t k = 1; k <= count; ++k) {
      for (std::int64_t parts = 1; parts <= count; ++parts) {
        if (count % parts != 0) continue;
        const ExpertShape experts{.count = count, .per_token = k};
        CHECK(expected_destinations(experts, parts) ==
              Approx(parts_of_all_choices(count, k, parts)));
      }
    }
  }
  // A router that keeps 4 of 8 groups reaches at most 4 nodes.
  ExpertShape limited{.count = 256, .per_token = 8};
  CHECK(expected_destinations(limited, 8) > 4);
  limited.router.groups = 8;
  limited.router.groups_kept = 4;
  CHECK(expected_destinations(limited, 8) == Approx(4));
}

TEST_CASE("tokens that a router sends equal the expectation in the price") {
  constexpr std::int64_t kTokens = 4096;
  ExpertShape experts{.count = 64, .per_token = 8};
  experts.router.score = RouterScore::kSigmoid;  // with sigmoid scores, groups limit the choice
  for (const std::int64_t groups : {1, 8}) {
    experts.router.groups = groups;
    experts.router.groups_kept = groups == 1 ? 1 : 4;
    const std::vector<std::int32_t> chosen = routed(experts, kTokens);
    for (const std::int64_t ranks : {2, 4, 8, 16, 32}) {
      const Sent sent = sent_by(chosen, experts, kTokens, ranks);
      INFO(groups << " groups, " << ranks << " ranks");
      // All-to-all: one copy for every choice on another rank.
      const double others = 1 - 1 / static_cast<double>(ranks);
      CHECK(sent.copies / kTokens == Approx(8 * others).epsilon(0.02));
      // Deduplicated: one copy for every other rank with at least one choice.
      CHECK(sent.places / kTokens == Approx(others * expected_destinations(experts, ranks))
                                         .epsilon(groups == 1 ? 0.01 : 0.025));
    }
  }
}

TEST_CASE("the busiest rank has the stated load, or a natural load that grows with ep") {
  Scenario scenario = mixture_scenario();
  Plan plan = mixture_plan(scenario.model);
  scenario.model.experts.count = 128;
  const auto load = [&](std::int64_t ep, std::int64_t stated) {
    scenario.stack.parts.expert_load = stated;
    plan.degrees.ep = ep;
    return busiest_load(scenario.stack, scenario.model, plan);
  };
  CHECK(load(8, kBalancedLoad) == 1);
  CHECK(load(8, 1300) == Approx(1.3));
  CHECK(load(1, 1300) == 1);  // with ep 1 no rank waits for another
  CHECK(load(8, kNaturalLoad) > 1);
  CHECK(load(64, kNaturalLoad) > load(8, kNaturalLoad));
  CHECK(load(128, kNaturalLoad) < 2.5);
}

TEST_CASE("expert counts determine the load of the busiest rank") {
  Scenario scenario = mixture_scenario();
  Plan plan = mixture_plan(scenario.model);
  scenario.model.experts.count = 8;
  scenario.stack.parts.expert_load = kCountedLoad;
  CHECK_FALSE(check_load(scenario.stack, scenario.model).ok());
  scenario.model.experts.counts = {1, 1, 1, 1, 1, 1, 1, 9,   // sums per rank 2, 2, 2, 10
                                   2, 2, 2, 2, 2, 2, 2, 2};  // balanced
  REQUIRE(check_load(scenario.stack, scenario.model).ok());
  plan.degrees.ep = 4;
  CHECK(busiest_load(scenario.stack, scenario.model, plan) == Approx((2.5 + 1) / 2));
  plan.degrees.ep = 8;
  CHECK(busiest_load(scenario.stack, scenario.model, plan) == Approx((4.5 + 1) / 2));
  plan.degrees.ep = 1;
  CHECK(busiest_load(scenario.stack, scenario.model, plan) == 1);
  // The load as a number gives the same step.
  plan.degrees.ep = 4;
  scenario.model = mixture_scenario().model;
  const std::int64_t count = scenario.model.experts.count;
  for (std::int64_t i = 0; i < count; ++i)
    scenario.model.experts.counts.push_back(i < count / 4 ? 2 : 1);
  const double load = busiest_load(scenario.stack, scenario.model, plan);
  const Seconds counted = simulate(scenario, plan)->step;
  CHECK(load == Approx(2 / 1.25));
  scenario.stack.parts.expert_load = 1600;
  CHECK(counted.value() == Approx(simulate(scenario, plan)->step.value()));
}

// Algorithm bandwidths of HybridEP with 16 SMs: dispatch and combine in bf16, including tokens that
// stay on the rank. 4096 tokens of width 7168, 8 choices and 8 experts per rank, on one NVLink
// domain of GB200 (Hybrid-EP_Implementation.md of deepseek-ai/DeepEP, branch hybrid-ep).
TEST_CASE("HybridEP takes its published time") {
  struct Row {
    std::int64_t ranks;
    double dispatch, combine;  // GB/s
  };
  Scenario scenario = mixture_scenario();
  scenario.profile = *Catalogue::open()->load_profile("gb200");
  scenario.cluster = *Catalogue::open()->load_cluster("gb200-nvl72");
  const CollectiveCostModel collectives(scenario.profile, scenario.cluster);
  for (const Row& row : {Row{8, 750.15, 684.27},
                         {16, 661.93, 600.75},
                         {24, 637.80, 565.53},
                         {32, 629.79, 547.25},
                         {36, 612.85, 543.27}}) {
    scenario.model.experts.count = 8 * row.ranks;
    scenario.model.experts.per_token = 8;
    const std::int64_t once = 4096 * 7168 * 2;
    LoweredCollective record{{CollectiveKind::kAllToAll, GroupKind::kExpert, row.ranks, 8 * once,
                              Label{ModelPart::kDispatch, "experts.to_experts"}}};
    record.dispatcher = Dispatcher::kHybridEp;
    const GroupPlacement group{.ranks = row.ranks, .nodes = 1, .ranks_per_node = row.ranks};
    const double bytes =
        expected_destinations(scenario.model.experts, row.ranks) * static_cast<double>(once);
    const double published = 0.5 * (bytes / (row.dispatch * 1e9) + bytes / (row.combine * 1e9));
    const Seconds kernel =
        dispatch_time(scenario.model.experts, collectives, record, group) - Seconds(60e-6);
    INFO(row.ranks << " ranks");
    CHECK(kernel.value() == Approx(published).epsilon(0.1));
    CHECK(explain_dispatch(scenario.model.experts, collectives, record, group).find("HybridEP") ==
          0);
  }
}

TEST_CASE("fewer copies of tokens save time, and imbalance costs time") {
  const Scenario scenario = mixture_scenario();
  const Plan plan = mixture_plan(scenario.model);
  const auto step = [&](const PartValues& parts) { return with(scenario, plan, parts).step; };
  const auto sent = [&](std::string_view dispatcher) {
    return time_of(with(scenario, plan, one(StackPart::kDispatcher, dispatcher)),
                   StepTerm::kExpertCommunication);
  };
  CHECK(sent("alltoall") > Seconds());
  CHECK(step(one(StackPart::kPermute, "unfused")) > step(one(StackPart::kPermute, "fused")));
  // Without expert tensor parallelism the hidden dimension is not sliced.
  CHECK(step(one(StackPart::kPermute, "unfused_seq")) == step(one(StackPart::kPermute, "unfused")));
  const Plan sharded = test::plan_of(scenario.model, {.tp = 2, .dp = 2, .ep = 2, .etp = 2}, 8);
  CHECK(with(scenario, sharded, one(StackPart::kPermute, "unfused_seq")).step >
        with(scenario, sharded, one(StackPart::kPermute, "unfused")).step);
  CHECK(step(one(StackPart::kRouterKernel, "torch")) >
        step(one(StackPart::kRouterKernel, "fused")));
  CHECK(step(one(StackPart::kExpertLoad, "1.5")) > step(one(StackPart::kExpertLoad, "balanced")));
  CHECK(step(one(StackPart::kCudaGraphs, "moe_router,moe_preprocess")) <= step({}));
  CHECK(step(one(StackPart::kCudaGraphs, "full_iteration")) <=
        step(one(StackPart::kCudaGraphs, "moe_router,moe_preprocess")));
}

TEST_CASE("a dispatcher saves copies only where it sends tokens") {
  const Scenario scenario = mixture_scenario();
  const auto copying = [&](const Plan& plan, std::string_view dispatcher) {
    const PartValues parts = one(StackPart::kDispatcher, dispatcher);
    return time_of(with(scenario, plan, parts), StepTerm::kPermute);
  };
  Plan plan = mixture_plan(scenario.model);
  CHECK(copying(plan, "hybridep") < copying(plan, "alltoall"));
  plan.degrees.ep = 1;
  CHECK(copying(plan, "hybridep") == copying(plan, "alltoall"));
}

TEST_CASE("host time of quantizing per expert grows with the experts of a rank") {
  Scenario scenario = mixture_scenario();
  scenario.profile = *Catalogue::open()->load_profile("h100-sxm");
  scenario.model.experts.count = 64;
  Plan plan = mixture_plan(scenario.model);
  const auto step = [&](Precision precision, std::int64_t ep, Seconds each,
                        std::string_view graphs) {
    Scenario with_host = scenario;
    with_host.stack.host.per_expert_forward = each;
    with_host.stack.host.per_expert_backward = 1.5 * each;
    Plan other = plan;
    other.precision = precision;
    other.degrees.ep = ep;
    return with(with_host, other, one(StackPart::kCudaGraphs, graphs)).step;
  };
  const auto cost = [&](Precision precision, std::int64_t ep, std::string_view graphs) {
    constexpr Seconds kEach(1e-3);
    return (step(precision, ep, kEach, graphs) - step(precision, ep, Seconds(), graphs)).value();
  };
  const double of_32 = cost(Precision::kFp8, 2, "none");
  const double of_16 = cost(Precision::kFp8, 4, "none");
  CHECK(of_16 > 0);
  CHECK(of_32 == Approx(2 * of_16).epsilon(0.05));
  CHECK(cost(Precision::kFp8, 4, "moe_router,moe_preprocess") == Approx(of_16).epsilon(0.05));
  CHECK(cost(Precision::kFp8, 4, "full_iteration") == 0);
  CHECK(cost(Precision::kNone, 4, "none") == 0);
}

TEST_CASE("recomputed modules take time and save memory") {
  Scenario scenario = mixture_scenario();
  Plan plan = mixture_plan(scenario.model);
  const Prediction keeps = with(scenario, plan, {});
  plan.recompute = Recompute::kSelective;
  Seconds before = keeps.step;
  Bytes held = keeps.peak;
  for (const char* modules : {"moe_act", "moe_act,layernorm", "moe,layernorm"}) {
    INFO(modules);
    const Prediction p = with(scenario, plan, one(StackPart::kRecomputeModules, modules));
    CHECK(p.step > before);
    CHECK(p.peak <= held);
    before = p.step;
    held = p.peak;
  }
}

TEST_CASE("MTP layers take time and memory") {
  Scenario scenario = mixture_scenario();
  const Plan plan = mixture_plan(scenario.model);
  const Prediction none = with(scenario, plan, {});
  scenario.model.ends.prediction_layers = 1;
  const Prediction one_more = with(scenario, plan, {});
  CHECK(one_more.step > none.step);
  CHECK(one_more.peak > none.peak);
  // Layers with shared weights are one layer that runs once for each predicted token.
  scenario.model.ends.prediction_layers = 2;
  const Prediction apart = with(scenario, plan, {});
  const std::int64_t weights = parameter_count(scenario.model);
  scenario.model.ends.prediction_shared = true;
  const Prediction shared = with(scenario, plan, {});
  CHECK(shared.peak < apart.peak);
  CHECK(shared.step > one_more.step);
  CHECK(shared.step <= apart.step);
  CHECK(parameter_count(scenario.model) < weights);
  ModelSpec own = scenario.model;
  own.ends.prediction_shared = false;
  CHECK(model_flops_per_step(scenario.model, 8) == model_flops_per_step(own, 8));
}

TEST_CASE("buffers of a fixed capacity take memory, and a stash takes time to save it") {
  const Scenario scenario = mixture_scenario();
  Plan plan = mixture_plan(scenario.model);
  plan.recompute = Recompute::kNone;
  const Prediction mean = with(scenario, plan, one(StackPart::kExpertLoad, "balanced"));
  const auto buffered = [&](const char* capacity, const char* stash) {
    PartValues parts = one(StackPart::kExpertLoad, "balanced");
    parts.merge(one(StackPart::kExpertCapacity, capacity));
    parts.merge(one(StackPart::kExpertStash, stash));
    return with(scenario, plan, parts);
  };
  const Prediction same = buffered("1", "off"), large = buffered("3", "off");
  CHECK(same.peak == mean.peak);
  CHECK(same.step == mean.step);
  CHECK(large.peak > mean.peak);
  CHECK(large.step == mean.step);
  const Prediction stashed = buffered("3", "1.2");
  CHECK(stashed.peak < large.peak);
  CHECK(stashed.step > large.step);
}

}  // namespace tpsim
