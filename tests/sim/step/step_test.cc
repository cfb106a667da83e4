// Laws that tie the plan arithmetic to the traced program of a whole rank.
#include "sim/step/step.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/plan/rank_layout.h"
#include "sim/bounds/group_bounds.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::plan_of;
using test::small_scenario;

struct Case {
  const char* name;
  ModelSpec model;
  Plan plan;
  bool fused_accumulation = true;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama(), test::small_gpt()}) {
    const auto add = [&](const char* name, ParallelDegrees degrees, auto change) {
      Case c{name, model, plan_of(model, degrees, 4), true};
      change(c);
      REQUIRE(validate(c.plan, model).ok());
      list.push_back(c);
    };
    add("one rank", {1, 1, 1, 1}, [](Case&) {});
    add("tensor", {2, 1, 1, 1}, [](Case& c) { c.plan.recompute = Recompute::kNone; });
    add("sequence", {2, 1, 2, 1}, [](Case& c) {
      c.plan.sequence_parallel = true;
      c.plan.recompute = Recompute::kSelective;
    });
    add("pipeline", {1, 4, 1, 1}, [](Case&) {});
    add("gpipe", {1, 2, 2, 1}, [](Case& c) { c.plan.schedule = ScheduleKind::kGpipe; });
    add("interleaved", {2, 2, 1, 1}, [](Case& c) {
      c.plan.schedule = ScheduleKind::kInterleaved;
      c.plan.virtual_stages = 2;
      c.plan.stage_layers = even_stage_layers(c.model.layers, 4, false);
    });
    add("some blocks recomputed", {1, 2, 1, 1}, [](Case& c) {
      c.plan.recompute = Recompute::kBlocks;
      c.plan.recompute_blocks = 3;
    });
    add("some blocks of uneven stages recomputed, zero 3", {2, 2, 2, 1}, [](Case& c) {
      c.plan.recompute = Recompute::kBlocks;
      c.plan.recompute_blocks = 2;
      c.plan.stage_layers = {1, 7};
      c.plan.zero = 3;
      c.plan.attention = AttentionKind::kFlash;
    });
    add("some blocks recomputed, interleaved", {2, 2, 1, 1}, [](Case& c) {
      c.plan.recompute = Recompute::kBlocks;
      c.plan.recompute_blocks = 1;
      c.plan.schedule = ScheduleKind::kInterleaved;
      c.plan.virtual_stages = 2;
      c.plan.stage_layers = {1, 3, 3, 1};
    });
    add("zero 1", {1, 2, 2, 1}, [](Case& c) { c.plan.zero = 1; });
    add("offloaded optimizer", {2, 2, 2, 1}, [](Case& c) {
      c.plan.zero = 1;
      c.plan.offload = Offload::kOptimizer;
    });
    add("zero 2", {2, 1, 2, 1}, [](Case& c) { c.plan.zero = 2; });
    add("zero 3", {1, 1, 4, 1}, [](Case& c) {
      c.plan.zero = 3;
      c.plan.attention = AttentionKind::kFlash;
    });
    add("context", {1, 1, 1, 2}, [](Case& c) { c.plan.attention = AttentionKind::kFlash; });
    add("context, unfused", {1, 1, 1, 4},
        [](Case& c) { c.plan.recompute = Recompute::kSelective; });
    add("context, tensor and pipeline", {2, 2, 1, 2}, [](Case& c) {
      c.plan.sequence_parallel = true;
      c.plan.recompute = Recompute::kNone;
      c.plan.attention = AttentionKind::kFlash;
    });
    add("context and zero", {1, 1, 2, 2}, [](Case& c) {
      c.plan.zero = 3;
      c.plan.recompute = Recompute::kNone;
    });
    add("context, zero 1 and interleaved", {1, 2, 2, 2}, [](Case& c) {
      c.plan.zero = 1;
      c.plan.schedule = ScheduleKind::kInterleaved;
      c.plan.virtual_stages = 2;
      c.plan.stage_layers = even_stage_layers(c.model.layers, 4, false);
    });
    add("separate gradients", {2, 2, 2, 1}, [](Case& c) { c.fused_accumulation = false; });
  }
  const auto add_to = [&](const ModelSpec& model, const char* name, ParallelDegrees degrees,
                          auto change) {
    Case c{name, model, plan_of(model, degrees, 4), true};
    c.plan.sequence_parallel = degrees.tp > 1;
    change(c);
    REQUIRE(validate(c.plan, model).ok());
    list.push_back(c);
  };
  for (const ModelSpec& model : {test::small_hybrid(), test::small_delta_net()}) {
    add_to(model, "recurrences", {1, 1, 1, 1},
           [](Case& c) { c.plan.recompute = Recompute::kNone; });
    add_to(model, "recurrences, tensor and pipeline", {2, 2, 2, 1}, [](Case& c) {
      c.plan.stage_layers = {5, 3};
    });
    add_to(model, "recurrences made again", {2, 1, 2, 1}, [](Case& c) { c.plan.zero = 3; });
  }
  const auto add_experts = [&](const char* name, ParallelDegrees degrees, auto change) {
    add_to(test::small_mixture(), name, degrees, change);
  };
  add_experts("experts", {1, 1, 1, 1, 1}, [](Case&) {});
  add_experts("expert groups", {1, 1, 4, 1, 2}, [](Case& c) {
    c.plan.recompute = Recompute::kNone;
    c.plan.zero = 0;
  });
  add_experts("experts of one rank each", {1, 2, 4, 1, 4}, [](Case& c) { c.plan.zero = 1; });
  add_experts("expert and tensor groups", {2, 2, 2, 1, 2}, [](Case& c) { c.plan.zero = 1; });
  add_experts("experts, zero 2", {1, 1, 4, 1, 2}, [](Case& c) { c.plan.zero = 2; });
  add_experts("experts, zero 3 and context", {1, 1, 4, 2, 2}, [](Case& c) { c.plan.zero = 3; });
  add_experts("experts, separate gradients", {1, 2, 2, 1, 2}, [](Case& c) {
    c.fused_accumulation = false;
    c.plan.rank_order = RankOrder::kTpPpDp;
  });
  return list;
}

Scenario scenario_of(const Case& c) {
  Scenario scenario = small_scenario(c.model);
  scenario.stack.training.fused_gradient_accumulation = c.fused_accumulation;
  scenario.stack.memory.allocation_granularity = Bytes(1);
  return scenario;
}

// The rank of a stage that layers are traced for.
std::int64_t rank_of(const Plan& plan, std::int64_t stage) {
  return global_rank(plan, {.pp = stage, .cp = plan.degrees.cp - 1});
}

// Highest total of a traced program, counted after its weights exist.
double traced_peak(const Program& program) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    if (program.events[i].kind != ProgramEvent::Kind::kOp) continue;
    if (program.ops[program.events[i].index].label.part == ModelPart::kInitialization) begin = i;
  }
  const MemoryChange fixed = memory_change(program, 0, begin, Bytes(1));
  const MemoryChange run = memory_change(program, begin, program.events.size(), Bytes(1));
  return total(fixed.left) + total(run.highest);
}

}  // namespace

TEST_CASE("steps that last longer than time is counted are an error") {
  for (const Case& c : cases()) {
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
  for (const Case& c : cases()) {
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
  const Case c = cases().front();
  double before = 2;
  for (const double spread : {0.0, 0.05, 0.2, 0.3, 0.31, 0.7, 1.0, 10.0}) {
    Scenario scenario = scenario_of(c);
    scenario.stack.residual_spread = scenario.stack.run_spread = spread;
    const Prediction predicted = simulate(scenario, c.plan).value();
    const double low = predicted.step_low / predicted.step;
    CHECK((0 < low && low < before));
    before = low;
    Prediction same = predicted;
    widen_interval(same, 0, 0);
    CHECK(same.step_low.value() == Approx(predicted.step_low.value()));
    CHECK(predicted.step <= predicted.step_high);
  }
}

TEST_CASE("memory of a stage equals the replay of its rank's whole trace") {
  for (int i = 0; i < 2 * static_cast<int>(cases().size()); ++i) {
    const Case c = cases()[static_cast<std::size_t>(i / 2)];
    Scenario scenario = scenario_of(c);
    const bool beside = i % 2 == 1;  // gradients are reduced beside backward
    scenario.stack.training.overlap_gradient_reduction = beside;
    scenario.stack.memory.layer_in_reduction = beside;
    LayerPricer pricer(scenario);
    const auto stages = memory_by_stage(scenario.stack, c.plan, plan_costs(pricer, c.plan));
    for (std::int64_t pp = 0; pp < c.plan.degrees.pp; ++pp) {
      INFO(c.model.name << " " << c.name << " stage " << pp << (beside ? ", beside" : ""));
      const Program program =
          trace_rank(c.model, c.plan, scenario.stack.training, rank_of(c.plan, pp)).program;
      // The trace also holds ALiBi slopes and a few scalars.
      CHECK(stages[static_cast<std::size_t>(pp)].total().value() ==
            Approx(traced_peak(program)).epsilon(2e-4));
    }
  }
}

TEST_CASE("device time of the layers equals the price of the whole trace") {
  for (const Case& c : cases()) {
    if (c.plan.offload != Offload::kNone) continue;  // the cluster's host prices those, no profile
    const Scenario scenario = scenario_of(c);
    LayerPricer pricer(scenario);
    const PlanCosts costs = plan_costs(pricer, c.plan);
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
      INFO(c.model.name << " " << c.name << " stage " << s);
      Seconds composed;
      for (std::size_t i = 0; i < costs.stages[s].chunks.size(); ++i) {
        const ChunkCost& chunk = costs.chunk(costs.stages[s], i);
        for (const PhaseCost* phase : {&chunk.forward, &chunk.backward}) {
          for (const Seconds t : phase->by_source) {
            composed += static_cast<double>(micro_batches(c.plan)) * t;
          }
        }
      }
      const Program program = trace_rank(c.model, c.plan, scenario.stack.training,
                                         rank_of(c.plan, static_cast<std::int64_t>(s)))
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

TEST_CASE("sharing sequences shares activations and the work of a step") {
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
  for (const Case& c : cases()) {
    const Result<Prediction> p = simulate(scenario_of(c), c.plan);
    REQUIRE(p.ok());
    Seconds sum;
    for (const Term& term : p->breakdown) {
      INFO(c.model.name << " " << c.name << " " << name_of(term.kind));
      CHECK(term.time.value() > -1e-12);
      CHECK_FALSE(term.formula.empty());
      CHECK_FALSE(term.source.empty());
      sum += term.time;
    }
    CHECK(sum.value() == Approx(p->step.value()).epsilon(1e-12));
    CHECK(p->step_low < p->step);
    CHECK(p->step < p->step_high);
  }
}

TEST_CASE("more bandwidth is never slower") {
  for (const Case& c : cases()) {
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
  for (const Case& c : cases()) {
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
    CHECK(least.step > 0.5 * value.step);  // it says something
  }
}

TEST_CASE("a plan for more GPUs than the cluster has is refused") {
  const ModelSpec model = test::small_bloom();
  const Result<Prediction> p = simulate(small_scenario(model), plan_of(model, {8, 8, 1, 1}, 4));
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().kind == ErrorKind::kBadInput);
}

TEST_CASE("wide logits and stand-ins take memory where they should") {
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
  scenario.stack.training.wide_logits = true;
  CHECK(peak() > before);
}

TEST_CASE("a rank's experts, of one shape, have one stand-in together") {
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

TEST_CASE("an offloaded optimizer frees its state and pays for the link and the host") {
  const ModelSpec model = test::small_bloom();
  Scenario scenario = test::small_scenario(model);
  Plan plan = test::plan_of(model, {2, 1, 2, 1}, 4);
  plan.zero = 1;
  const Prediction kept = *simulate(scenario, plan);
  plan.offload = Offload::kOptimizer;
  const Prediction offloaded = *simulate(scenario, plan);
  const auto state = static_cast<std::size_t>(MemoryCategory::kOptimizer);
  CHECK(offloaded.memory.front().by_category[state] == Bytes());
  // Master, momentum and variance leave; beside them the host holds gradients and weights.
  const double elements = kept.memory.front().by_category[state].value() / 12;
  const double of_node = 4 * elements * (12 + 4 + 2);
  CHECK(offloaded.host_memory.value() == Approx(of_node).epsilon(1e-3));
  CHECK(kept.host_memory == Bytes());

  const HostSpec& host = scenario.cluster.host;
  const double link = elements * 6 / (host.link.value() * host.link_efficiency);
  const double update =
      4 * elements * 30 / (host.memory_bandwidth.value() * host.memory_efficiency);
  const auto optimizer = [](const Prediction& p) {
    return time_of(p, StepTerm::kOptimizer).value();
  };
  CHECK(optimizer(offloaded) > link + update);
  CHECK(optimizer(offloaded) < link + update + optimizer(kept) + 1e-3);

  scenario.cluster.host.memory = Bytes(0.9 * of_node);
  CHECK(simulate(scenario, plan)->p_oom == 1);

  // Where the host is the device there is one memory.
  scenario.cluster.host.memory = Bytes(1e12);
  scenario.profile.device.asynchronous = false;
  const Prediction on_cpu = *simulate(scenario, plan);
  CHECK(on_cpu.host_memory == Bytes());
  CHECK(on_cpu.memory.front().by_category[state].value() == Approx(elements * 18).epsilon(1e-3));
}

}  // namespace tpsim
