// From a profile of this machine to predictions: entries that plans need, the machine as a cluster,
// a rank's times, and their comparison with measurements.
#include <catch2/catch.hpp>
#include <set>

#include "app/answers/comparison.h"
#include "core/scenario/measured_stack.h"
#include "costs/machine_cluster.h"
#include "devices/ops_to_profile.h"
#include "devices/rank_times.h"
#include "lowering/trace/rank_trace.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"
#include "tests/test_label.h"

namespace tpsim::app {
namespace {

std::vector<Plan> some_plans(const ModelSpec& model) {
  std::vector<Plan> plans;
  for (const ParallelDegrees degrees :
       {ParallelDegrees{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}, {1, 4, 1}}) {
    for (const int zero : {0, 1, 3}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
        Plan plan = test::plan_of(model, degrees, 4);
        plan.zero = zero;
        plan.recompute = recompute;
        plan.dtype = zero == 0 ? DType::kFloat32 : DType::kBFloat16;
        plans.push_back(plan);
      }
    }
  }
  return plans;
}

OpTime op_time(std::int64_t elements, double seconds) {
  return {
      {{OpKind::kFill, DType::kFloat32, 0, {elements}}, 0, 0, test::kTest}, 2, Seconds(seconds)};
}

}  // namespace

TEST_CASE("shortened steps need every op and collective size of the whole steps") {
  const ModelSpec model = test::small_bloom();
  const std::vector<Plan> plans = some_plans(model);
  const StepTimes needed = ops_to_profile(model, {}, plans);
  std::set<OpKey> keys;
  for (const OpTime& op : needed.ops) keys.insert(op.record.key);
  std::set<std::tuple<CollectiveKind, std::int64_t, std::int64_t>> calls;
  for (const CollectiveTime& c : needed.collectives) {
    calls.insert({c.record.kind, c.record.ranks, c.record.bytes});
  }
  CHECK(keys.size() == needed.ops.size());
  for (const Plan& plan : plans) {
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const RankTrace trace = trace_rank(model, plan, {}, rank);
      for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
        const ProgramEvent& event = trace.program.events[i];
        if (event.kind == ProgramEvent::Kind::kOp) {
          const OpKey& key = trace.program.ops[event.index].key;
          if (!keys.contains(key)) FAIL_CHECK(to_string(key) + " of " + short_name(plan));
        } else if (event.kind == ProgramEvent::Kind::kCollective) {
          const CollectiveRecord& c = trace.program.collectives[event.index];
          CHECK(calls.contains({c.kind, c.ranks, c.bytes}));
        }
      }
    }
  }
}

TEST_CASE("plans that share a rehearsal are rehearsed once, shortened to fit in memory") {
  const ModelSpec model = test::small_bloom();
  Plan plan = test::plan_of(model, {1, 2, 1}, 8);
  Plan longer = plan;
  longer.global_batch *= 2;
  const auto rehearsed =
      plans_to_time(model, {plan, longer}, [](const TimedPlan&) { return true; });
  REQUIRE(rehearsed.size() == 1);
  CHECK(rehearsed[0].model.layers == model.layers);
  CHECK(micro_batches(rehearsed[0].plan) == 4);
  CHECK(validate(rehearsed[0].plan, rehearsed[0].model).ok());
  CHECK(plans_to_time(model, {plan}, [](const TimedPlan&) { return false; }).empty());

  const auto fits = [&](const TimedPlan& step) { return step.model.layers < model.layers - 1; };
  const auto cut = plans_to_time(model, {plan}, fits);
  REQUIRE(cut.size() == 1);
  CHECK(fits(cut[0]));
  CHECK(validate(cut[0].plan, cut[0].model).ok());
}

TEST_CASE("a profile's machine is a node of its devices") {
  Profile profile;
  profile.name = "here";
  profile.machine.devices = 6;
  profile.machine.rank_jitter = 0.03;
  profile.device.asynchronous = false;
  profile.device.memory_bandwidth = BytesPerSecond(5e9);
  const ClusterSpec bare = machine_cluster(profile);
  CHECK(bare.nodes * bare.gpus_per_node == 6);
  CHECK(bare.stack == "reference-cpu");
  CHECK(bare.intra_node.bandwidth == profile.device.memory_bandwidth);
  profile.collectives = {{CollectiveKind::kAllReduce, 2, Bytes(8), Seconds(2e-6)},
                         {CollectiveKind::kAllReduce, 2, Bytes(1e6), Seconds(1e-4)}};
  profile.model.kernel_latency = Seconds(1e-5);
  const ClusterSpec measured = machine_cluster(profile);
  CHECK(measured.intra_node.bandwidth.value() == Approx(1e10));
  CHECK(measured.intra_node.latency.value() == Approx(2e-6));

  StackSpec stack;
  stack.rank_jitter = 0.04;
  CHECK(completed_stack(stack, {}, profile, measured).rank_jitter == Approx(0.05));
  CHECK(completed_stack(stack, {}, profile, {}).rank_jitter == 0.04);
}

TEST_CASE(
    "what the program measured of itself replaces what its own stack assumes, and no other's") {
  Profile profile;
  profile.device.asynchronous = true;
  StackSpec own;
  own.name = "reference";
  own.memory.context = Bytes(500e6);
  own.host.per_op = Seconds(4e-6);
  CHECK(stack_as_measured(own, profile).memory.context == own.memory.context);
  profile.runtime.context = Bytes(700e6);
  profile.runtime.launch = Seconds(3e-6);
  CHECK(stack_as_measured(own, profile).memory.context == Bytes(700e6));
  CHECK(stack_as_measured(own, profile).host.per_op == Seconds(3e-6));
  StackSpec other = own;
  other.name = "megatron-lm";
  CHECK(stack_as_measured(other, profile).host.per_op == other.host.per_op);
}

TEST_CASE("with one queue for host and device, a single rank's step is the sum of its ops") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.profile.device.asynchronous = false;
  const Plan plan = test::plan_of(scenario.model, {1, 1, 1}, 3);
  LayerPricer pricer(scenario);
  const StepTimes times = predicted_times(pricer, plan, 0);
  const auto predicted = simulate(scenario, plan);
  REQUIRE(predicted.ok());
  Seconds loss;  // the loss's few ops belong to no layer
  for (const OpTime& op : times.ops) {
    if (op.record.label.part == ModelPart::kReporting) loss += op.time;
  }
  // Every layer clears a separate sum of squares; the rank clears one for all layers.
  CHECK(predicted->step.value() == Approx((total(times.ops) - loss).value()).epsilon(5e-3));
}

TEST_CASE("a comparison joins by op, with the largest residual first") {
  StepTimes predicted{{op_time(1, 1.0), op_time(2, 5.0)}, {}};
  StepTimes measured{{op_time(1, 3.0), op_time(2, 5.5), op_time(3, 0.1)}, {}};
  const app::Comparison comparison = app::compare(predicted, measured);
  REQUIRE(comparison.ops.size() == 3);
  CHECK(comparison.ops[0].what == "fill 1 fp32");
  CHECK(comparison.ops[0].residual().value() == Approx(-2));
  CHECK(comparison.ops[0].error() == Approx(-2.0 / 3));
  CHECK(comparison.ops[0].count == 2);
  CHECK(comparison.ops[2].predicted.value() == 0);
  REQUIRE(comparison.kinds.size() == 1);
  CHECK(comparison.kinds[0].measured.value() == Approx(8.6));

  const auto worth = worth_measuring_again(comparison, Seconds(10), 0.04, 8);
  REQUIRE(worth.size() == 2);
  CHECK(worth[1].what == "fill 2 fp32");
  CHECK(worth_measuring_again(comparison, Seconds(10), 0.04, 1).size() == 1);
  // The first of the two large residuals needs 1.5 s per run.
  const auto longer = worth_measuring_again(comparison, Seconds(10), 0.04, 8, Seconds(1.6));
  REQUIRE(longer.size() == 1);
  CHECK(longer[0].what == worth[1].what);
}

}  // namespace tpsim::app
