// Laws that compare the closed formulas of a plan with the traced program of a whole rank.
#include "sim/step/step.h"

#include <catch2/catch.hpp>

#include "core/base/normal.h"
#include "core/plan/rank_layout.h"
#include "core/scenario/measured_stack.h"
#include "lowering/trace/rank_trace.h"
#include "sim/bounds/group_bounds.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/step/interval.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim {
namespace {

using test::plan_of;
using test::scenario_of;
using test::small_scenario;
using test::step_cases;
using test::StepCase;
using test::traced_rank;

}  // namespace

TEST_CASE("steps beyond the maximum time are an error") {
  for (const StepCase& c : step_cases()) {
    INFO(c.model.name << " " << c.name);
    Scenario slow = scenario_of(c);
    slow.profile.model.matmul_latency = Seconds(1e7);
    slow.profile.ops.clear();
    const Result<Prediction> predicted = simulate(slow, c.plan);
    REQUIRE_FALSE(predicted.ok());
    CHECK(predicted.error().message.find("days") != std::string::npos);
    CHECK_FALSE(simulate_timeline(slow, c.plan).ok());
  }
}

TEST_CASE("a host that takes weeks gives an error, never a negative time") {
  for (const StepCase& c : step_cases()) {
    for (Seconds HostCost::*time :
         {&HostCost::per_op, &HostCost::per_collective, &HostCost::per_block_forward,
          &HostCost::per_block_backward, &HostCost::per_micro_batch, &HostCost::per_step}) {
      for (const double seconds : {1e4, 1e7, 1e13, 1e24}) {
        Scenario slow = scenario_of(c);
        slow.stack.host.*time = Seconds(seconds);
        const Result<Prediction> predicted = simulate(slow, c.plan);
        const Result<Timeline> timeline = simulate_timeline(slow, c.plan);
        CHECK(predicted.ok() == timeline.ok());
        if (seconds >= 1e7 && time == &HostCost::per_step) CHECK_FALSE(predicted.ok());
        if (!predicted.ok()) continue;
        CHECK(predicted->step.value() > 0);
        CHECK(predicted->step_low.value() >= 0);
      }
    }
  }
}

TEST_CASE("an interval of any spread begins above zero and widens with the spread") {
  const StepCase c = step_cases().front();
  double before = 2;
  for (const double spread : {0.0, 0.05, 0.2, 0.3, 0.31, 0.7, 1.0, 10.0}) {
    Scenario scenario = scenario_of(c);
    scenario.stack.residual_spread = scenario.stack.run_spread = spread;
    const Prediction predicted = simulate(scenario, c.plan).value();
    const double low = predicted.step_low / predicted.step;
    CHECK((0 < low && low < before));
    before = low;
    Prediction same = predicted;
    widen_interval(same, {});
    CHECK(same.step_low.value() == Approx(predicted.step_low.value()));
    CHECK(predicted.step <= predicted.step_high);
  }
}

TEST_CASE("a GPU or a program less among those with rows never narrows the interval") {
  const StepCase c = step_cases().front();
  Scenario scenario = scenario_of(c);
  const auto width = [&](const std::string& gpus, const std::string& programs) {
    scenario.stack.spread_gpus = gpus;
    scenario.stack.spread_programs = programs;
    const Prediction p = simulate(scenario, c.plan).value();
    return std::pair(1 - p.step_low / p.step, p.step_high / p.step - 1);
  };
  const std::string own = scenario.profile.name;
  const auto known = width("another," + own, "");
  CHECK(known == width("", ""));
  const auto other_gpu = width("another", ""), other_program = width(own, "Trainer");
  const auto neither = width("another", "Trainer");
  for (const auto& wider : {other_gpu, other_program}) {
    CHECK((known.first < wider.first && known.second < wider.second));
    CHECK(wider == neither);  // what is unknown counts once
  }
}

TEST_CASE("errors have heavier tails than a normal distribution, and the same 90 %") {
  CHECK(error_cdf(0) == Approx(0.5));
  CHECK(error_cdf(kHalfOf90) - error_cdf(-kHalfOf90) == Approx(0.9).epsilon(1e-3));
  CHECK(error_cdf(-4) > 20 * normal_cdf(-4));
  for (const double probability : {0.0005, 0.02, 0.5, 0.7, 0.95, 0.9999}) {
    CHECK(error_cdf(error_quantile(probability)) == Approx(probability).epsilon(1e-6));
  }
}

TEST_CASE("device time of the layers equals the price of the whole trace") {
  for (const StepCase& c : step_cases()) {
    if (c.plan.offload != Offload::kNone) continue;  // priced by the host
    Scenario scenario = scenario_of(c);
    scenario.stack.name = own_stack(scenario.profile);  // keeps the GEMMs of the reference model
    LayerPricer pricer(scenario);
    const PlanCosts costs = plan_costs(pricer, c.plan);
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
      INFO(c.model.name << " " << c.name << " stage " << s);
      Seconds composed;
      for (std::size_t i = 0; i < costs.stages[s].chunks.size(); ++i) {
        const ChunkCost& chunk = costs.chunk(costs.stages[s], i);
        for (const PhaseCost& task : chunk.tasks) {
          for (const Seconds t : task.by_source) {
            composed += static_cast<double>(micro_batches(c.plan)) * t;
          }
        }
      }
      const Program program = trace_rank(c.model, c.plan, scenario.stack.training,
                                         traced_rank(c.plan, static_cast<std::int64_t>(s)))
                                  .program;
      Seconds traced;
      for (const OpRecord& op : program.ops) {
        const ModelPart part = op.label.part;
        const bool outside = part == ModelPart::kInitialization || part == ModelPart::kZeroGrad ||
                             part == ModelPart::kReporting || part == ModelPart::kGradNorm ||
                             part == ModelPart::kOptimizer;
        if (!outside) traced += pricer.ops().price(op).time;
      }
      CHECK(composed.value() == Approx(traced.value()).epsilon(1e-9));
    }
  }
}

TEST_CASE("context-parallel ranks share the work of attention equally") {
  const ModelSpec model = test::small_llama();
  for (const AttentionKind attention : {AttentionKind::kFlash, AttentionKind::kUnfused}) {
    Plan plan = plan_of(model, {1, 1, 1, 4}, 1);
    plan.attention = attention;
    std::vector<double> flops;
    for (std::int64_t cp = 0; cp < 4; ++cp) {
      double sum = 0;
      const RankTrace trace = trace_rank(model, plan, {}, global_rank(plan, {.cp = cp}));
      for (const OpRecord& op : trace.program.ops) {
        const bool adds_up = op.label.part == ModelPart::kContextParallel;
        if (!adds_up) sum += op.flops;
      }
      flops.push_back(sum);
    }
    for (const double rank : flops) CHECK(rank == Approx(flops.front()).epsilon(1e-12));
  }
}

TEST_CASE("context parallelism shards activations and the work of a step") {
  const ModelSpec model = test::small_llama();
  const Scenario scenario = small_scenario(model);
  Plan one = plan_of(model, {1, 1, 1, 1}, 4);
  one.attention = AttentionKind::kFlash;
  Plan four = one;
  four.degrees.cp = 4;
  const Prediction alone = *simulate(scenario, one), shared = *simulate(scenario, four);
  const auto activations = [](const Prediction& p) {
    return p.memory[0].by_category[static_cast<std::size_t>(MemoryCategory::kActivations)];
  };
  CHECK(activations(shared) < 0.5 * activations(alone));
  CHECK(activations(shared) > 0.25 * activations(alone));
  CHECK(shared.model_tflops_per_gpu * shared.step.value() ==
        Approx(alone.model_tflops_per_gpu * alone.step.value() / 4));
}

TEST_CASE("terms add up to the step and none is negative") {
  for (const StepCase& c : step_cases()) {
    const Result<Prediction> p = simulate(scenario_of(c), c.plan);
    REQUIRE(p.ok());
    Seconds sum;
    for (const Term& term : p->breakdown) {
      INFO(c.model.name << " " << c.name << " " << name_of(term.kind));
      CHECK(term.time.value() > -1e-12);
      sum += term.time;
    }
    CHECK(sum.value() == Approx(p->step.value()).epsilon(1e-12));
    CHECK(p->step_low < p->step);
    CHECK(p->step < p->step_high);
  }
}

TEST_CASE("more bandwidth is never slower") {
  for (const StepCase& c : step_cases()) {
    const Scenario base = scenario_of(c);
    const Seconds before = simulate(base, c.plan)->step;
    const auto step_with = [&](auto change) {
      Scenario faster = base;
      change(faster);
      return simulate(faster, c.plan)->step;
    };
    INFO(c.model.name << " " << c.name);
    CHECK(step_with([](Scenario& s) { s.cluster.inter_node.bandwidth *= 2; }) <= before);
    CHECK(step_with([](Scenario& s) { s.cluster.intra_node.bandwidth *= 2; }) <= before);
    CHECK(step_with([](Scenario& s) { s.profile.device.memory_bandwidth *= 2; }) <= before);
    CHECK(step_with([](Scenario& s) { s.profile.device.matmul_peak *= 2; }) <= before);
    CHECK(step_with([](Scenario& s) { s.stack.host.per_op *= 0.5; }) <= before);
  }
}

TEST_CASE("no plan is faster than its closed form, and its closed peak is exact") {
  for (const StepCase& c : step_cases()) {
    LayerPricer pricer(scenario_of(c));
    PlanBounds bounds(pricer);
    const StageCut cut = stage_cut(c.plan.stage_layers, c.plan.degrees.pp, pricer.scenario().model);
    const PlanCosts costs = plan_costs(pricer, c.plan);
    const Seconds exact = step_cost(pricer, c.plan, costs, nullptr).step;
    INFO(c.model.name << " " << c.name);
    const PlanBounds::Value value = bounds.evaluate(c.plan, cut, Bytes(1e18));
    CHECK(value.step <= exact);
    if (c.plan.degrees.pp == 1) {
      CHECK(value.step.value() == Approx(exact.value()).epsilon(1e-8));
    }
    Bytes peak;
    for (const StageMemory& stage : memory_by_stage(pricer.scenario().stack, c.plan, costs)) {
      peak = std::max(peak, stage.total());
    }
    CHECK(value.peak.value() == Approx(peak.value()).epsilon(1e-12));
    GroupBounds group(pricer);
    const CutFloors floors = cut_floors(std::span(&cut, 1), pricer.scenario().model);
    CHECK(group.least_held(c.plan, floors) <= peak);
    CHECK(group.least_of_block(c.plan) <= peak);
    CHECK(group.least_peak(c.plan, floors) <= peak);
    const GroupBounds::Times least = group.least_times(c.plan, floors);
    CHECK(least.step <= value.step);
    CHECK(least.busy <= value.busy);
    CHECK(least.step > 0.5 * value.step);  // the bound is not trivial
  }
}

TEST_CASE("a plan for more GPUs than the cluster has is refused") {
  const ModelSpec model = test::small_bloom();
  const Result<Prediction> p = simulate(small_scenario(model), plan_of(model, {8, 8, 1, 1}, 4));
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().kind == ErrorKind::kBadInput);
}

}  // namespace tpsim
