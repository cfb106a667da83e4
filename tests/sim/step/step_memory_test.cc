// Laws of memory: it equals the replay of a rank's whole trace, and options change only their part.
#include <catch2/catch.hpp>

#include "core/software/cpu_optimizers.h"
#include "lowering/trace/rank_trace.h"
#include "sim/step/simulate.h"
#include "sim/step/step.h"
#include "tests/sim/small_scenario.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim {
namespace {

using test::scenario_of;
using test::step_cases;
using test::StepCase;
using test::traced_rank;

// Highest total of a traced program, counted after its weights exist.
double traced_peak(const Program& program) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    if (program.events[i].kind != ProgramEvent::Kind::kOp) continue;
    if (program.ops[program.events[i].index].label.part == ModelPart::kInitialization) begin = i;
  }
  LayerTrace trace{.program = program};
  trace.span(Phase::kAllocate) = {0, begin};
  trace.span(Phase::kForward) = {begin, program.events.size()};
  const LoweredLayer whole = as_traced({}, trace);
  const MemoryChange fixed = memory_change(whole, {Phase::kAllocate}, {Bytes(1)});
  const MemoryChange run = memory_change(whole, {Phase::kForward}, {Bytes(1)});
  return total(fixed.left) + total(run.highest);
}

}  // namespace

TEST_CASE("memory of a stage equals the replay of its rank's whole trace") {
  for (int i = 0; i < 2 * static_cast<int>(step_cases().size()); ++i) {
    const StepCase c = step_cases()[static_cast<std::size_t>(i / 2)];
    Scenario scenario = scenario_of(c);
    const bool beside = i % 2 == 1;  // gradient reductions overlap with backward
    scenario.stack.training.overlap_gradient_reduction = beside;
    scenario.stack.memory.layer_in_reduction = beside;
    LayerPricer pricer(scenario);
    const auto stages = memory_by_stage(scenario.stack, c.plan, plan_costs(pricer, c.plan));
    for (std::int64_t pp = 0; pp < c.plan.degrees.pp; ++pp) {
      INFO(c.model.name << " " << c.name << " stage " << pp << (beside ? ", beside" : ""));
      const Program program =
          trace_rank(c.model, c.plan, scenario.stack.training, traced_rank(c.plan, pp)).program;
      // The trace also holds ALiBi slopes and a few scalars.
      CHECK(stages[static_cast<std::size_t>(pp)].total().value() ==
            Approx(traced_peak(program)).epsilon(2e-4));
    }
  }
}

TEST_CASE("fp32 logits and gradient stand-ins take memory") {
  Scenario scenario = test::small_scenario(test::small_llama());
  scenario.stack.memory.fragmentation = 0;
  Plan plan;
  plan.micro_batch = plan.global_batch = 1;
  plan.stage_layers = {scenario.model.layers};
  plan.recompute = Recompute::kFull;
  plan.attention = AttentionKind::kFlash;
  const auto peak = [&] {
    const auto predicted = simulate(scenario, plan);
    REQUIRE(predicted.ok());
    return predicted->peak.value();
  };
  const double before = peak();
  scenario.stack.memory.gradient_stand_ins = true;
  const ModelSpec& m = scenario.model;
  const double block = static_cast<double>(
      2 * (m.hidden * (2 * m.hidden + 2 * 256) + 3 * m.hidden * m.ffn_hidden + 2 * m.hidden));
  CHECK(peak() - before == Approx(block).epsilon(0.01));
  scenario.stack.memory.gradient_stand_ins = false;
  scenario.stack.training.logits_dtype = LogitsDtype::kFloat32;
  CHECK(peak() > before);
}

TEST_CASE("the experts of a rank share one gradient stand-in") {
  Scenario scenario = test::small_scenario(test::small_mixture());
  scenario.stack.memory.fragmentation = 0;
  const auto of_stand_ins = [&](std::int64_t ep) {
    Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 4, .ep = ep}, 4);
    plan.attention = AttentionKind::kFlash;
    scenario.stack.memory.gradient_stand_ins = false;
    const Bytes without = simulate(scenario, plan)->peak;
    scenario.stack.memory.gradient_stand_ins = true;
    return (simulate(scenario, plan)->peak - without).value();
  };
  const ModelSpec& m = scenario.model;
  const std::int64_t attention = m.hidden * (2 * m.hidden + 2 * 256) + 2 * m.hidden;
  const auto block =
      static_cast<double>(2 * (attention + 4 * m.hidden + 3 * m.hidden * m.ffn_hidden));
  CHECK(of_stand_ins(1) == Approx(block).epsilon(0.01));
  CHECK(of_stand_ins(4) == Approx(of_stand_ins(1)).epsilon(0.01));
}

TEST_CASE("an offloaded optimizer frees its state and takes time for the link and the host") {
  const ModelSpec model = test::small_bloom();
  Scenario scenario = test::small_scenario(model);
  Plan plan = test::plan_of(model, {2, 1, 2, 1}, 4);
  plan.zero = 1;
  const Prediction kept = *simulate(scenario, plan);
  plan.offload = Offload::kOptimizer;
  const Prediction offloaded = *simulate(scenario, plan);
  const auto state = static_cast<std::size_t>(MemoryCategory::kOptimizer);
  CHECK(offloaded.memory.front().by_category[state] == Bytes());
  // Master weights, momentum and variance move to the host, which also holds gradients and weights.
  const double elements = kept.memory.front().by_category[state].value() / 12;
  const double of_node = 4 * elements * (12 + 4 + 2);
  CHECK(offloaded.host_memory.value() == Approx(of_node).epsilon(1e-3));
  CHECK(kept.host_memory == Bytes());

  const HostSpec& host = scenario.cluster.host;
  const double link = elements * 6 / (host.link.value() * host.link_efficiency);
  const double speed = row_of(scenario.stack.parts.cpu_optimizer).speed;
  const double update =
      4 * elements * 28 / (speed * host.memory_bandwidth.value() * host.memory_efficiency);
  const auto optimizer = [](const Prediction& p) {
    return time_of(p, StepTerm::kOptimizer).value();
  };
  CHECK(optimizer(offloaded) > link + update);
  CHECK(optimizer(offloaded) < link + update + optimizer(kept) + 1e-3);

  scenario.cluster.host.memory = Bytes(0.9 * of_node);
  CHECK(simulate(scenario, plan)->p_oom == 1);

  // If the device is the host, there is one memory.
  scenario.cluster.host.memory = Bytes(1e12);
  scenario.profile.device.asynchronous = false;
  const Prediction on_cpu = *simulate(scenario, plan);
  CHECK(on_cpu.host_memory == Bytes());
  CHECK(on_cpu.memory.front().by_category[state].value() == Approx(elements * 18).epsilon(1e-3));
}

}  // namespace tpsim
