// The time at which a rank reduces gradients, in the program and in the prediction.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/scenario/measured_stack.h"
#include "lowering/trace/rank_trace.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::plan_of;
using test::small_scenario;

bool is_reduction(const Program& program, const ProgramEvent& event) {
  return event.kind == ProgramEvent::Kind::kCollective &&
         program.collectives[event.index].label.part == ModelPart::kDataParallelReduction;
}

bool is_backward_product(const Program& program, const ProgramEvent& event) {
  if (event.kind != ProgramEvent::Kind::kOp) return false;
  const OpRecord& op = program.ops[event.index];
  return op.key.kind == OpKind::kMatmul && op.label.part == ModelPart::kMlpLinear;
}

// Number of reductions that begin before the program's last GEMMs.
std::int64_t reductions_before_the_end(const Program& program) {
  const auto last =
      std::find_if(program.events.rbegin(), program.events.rend(),
                   [&](const ProgramEvent& event) { return is_backward_product(program, event); });
  return std::count_if(last, program.events.rend(),
                       [&](const ProgramEvent& event) { return is_reduction(program, event); });
}

// Number of calls by kind, group and bytes.
std::map<std::tuple<CollectiveKind, GroupKind, std::int64_t>, int> calls(const Program& program) {
  std::map<std::tuple<CollectiveKind, GroupKind, std::int64_t>, int> calls;
  for (const CollectiveRecord& call : program.collectives) {
    ++calls[{call.kind, call.group, call.bytes}];
  }
  return calls;
}

}  // namespace

TEST_CASE("overlapped reductions begin layer by layer, only in the last micro-batch") {
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama()}) {
    for (const int zero : {0, 1}) {
      Plan plan = plan_of(model, {1, 1, 4, 1}, 3);
      plan.zero = zero;
      const Program after = trace_rank(model, plan, {}, 0).program;
      TrainingOptions options;
      options.overlap_gradient_reduction = true;
      const Program beside = trace_rank(model, plan, options, 0).program;
      INFO(model.name << ", zero " << zero);
      CHECK(reductions_before_the_end(after) == 0);
      // All blocks but the first, which has the last GEMMs; the head's norm; and the head's table
      // if it is untied.
      CHECK(reductions_before_the_end(beside) == model.layers - 1 + (model.tied_embedding ? 1 : 2));
      CHECK(calls(beside) == calls(after));
    }
  }
}

TEST_CASE("overlap gains nothing if the computing core also reduces gradients") {
  for (const int zero : {0, 1, 2, 3}) {
    Scenario scenario = small_scenario(test::small_llama());
    scenario.stack.overlap_slowdown = 2;
    Plan plan = plan_of(scenario.model, {1, 1, 4, 1}, 3);
    plan.zero = zero;
    const Prediction after = *simulate(scenario, plan);
    scenario.stack.training.overlap_gradient_reduction = true;
    INFO("zero " << zero);
    CHECK(simulate(scenario, plan)->step.value() == Approx(after.step.value()).epsilon(2e-3));
    scenario.stack.overlap_slowdown = 1.2;
    CHECK(simulate(scenario, plan)->step < after.step);
  }
}

TEST_CASE("the executed stack has the named stack's overlap of gradient reduction") {
  StackSpec named, own;
  own.overlap_slowdown = 2;
  for (const bool beside : {false, true}) {
    named.training.overlap_gradient_reduction = beside;
    named.training.overlap_parameter_gather = true;
    const StackSpec executed = executed_stack(named, own);
    CHECK(executed.training.overlap_gradient_reduction == beside);
    CHECK_FALSE(executed.training.overlap_parameter_gather);
    CHECK(executed.overlap_slowdown == 2);
  }
}

TEST_CASE("gradients unsharded until the last micro-batch are reduced once and need memory") {
  Scenario scenario = small_scenario(test::small_llama());
  scenario.stack.training.overlap_gradient_reduction = true;
  const auto with = [&](const Plan& plan, GradientSync sync) {
    scenario.stack.training.gradient_sync = sync;
    return *simulate(scenario, plan);
  };
  const auto gradients = [](const Prediction& prediction) {
    constexpr auto kGradients = static_cast<std::size_t>(MemoryCategory::kGradients);
    return prediction.memory.front().by_category[kGradients];
  };
  for (const int zero : {2, 3}) {
    INFO("zero " << zero);
    Plan plan = plan_of(scenario.model, {1, 1, 4, 1}, 3);
    plan.zero = zero;
    const Prediction every = with(plan, GradientSync::kEveryMicroBatch);
    const Prediction last = with(plan, GradientSync::kLastMicroBatch);
    // Every rank holds a quarter of the gradients, or all of them.
    CHECK(gradients(last).value() > 2 * gradients(every).value());
    CHECK(last.peak > every.peak);
    CHECK(time_of(last, StepTerm::kZeroCommunication) <
          time_of(every, StepTerm::kZeroCommunication));
    CHECK(with(plan, GradientSync::kLastInPipeline).step == every.step);
    // If gradients have the dtype of weights, ZeRO 2 equals ZeRO 1.
    Plan two = plan, one = plan;
    two.gradient_dtype = one.gradient_dtype = plan.dtype;
    one.zero = 1;
    const Prediction as_one = with(two, GradientSync::kLastMicroBatch);
    const Prediction sharded = with(one, GradientSync::kEveryMicroBatch);
    if (zero == 2) {
      CHECK(as_one.step.value() == Approx(sharded.step.value()).epsilon(1e-9));
      CHECK(as_one.peak.value() == Approx(sharded.peak.value()).epsilon(1e-9));
    }
    // With one micro-batch both settings are equal.
    plan.global_batch = plan.micro_batch * plan.degrees.dp;
    CHECK(with(plan, GradientSync::kLastMicroBatch).step ==
          with(plan, GradientSync::kEveryMicroBatch).step);
    CHECK(with(plan, GradientSync::kLastMicroBatch).peak ==
          with(plan, GradientSync::kEveryMicroBatch).peak);
  }
  Plan staged = plan_of(scenario.model, {1, 2, 2, 1}, 4);
  staged.zero = 2;
  CHECK(with(staged, GradientSync::kLastInPipeline).peak >
        with(staged, GradientSync::kEveryMicroBatch).peak);
}

TEST_CASE("a reduction in the accumulation dtype sends more than one in 16 bits") {
  Scenario scenario = small_scenario(test::small_llama());
  scenario.stack.training.gradient_accumulation = GradientAccumulation::kSeparate;
  for (const int zero : {2, 3}) {
    INFO("zero " << zero);
    Plan plan = plan_of(scenario.model, {1, 1, 4, 1}, 3);
    plan.zero = zero;
    plan.dtype = DType::kBFloat16;
    const auto in = [&](ReduceDtype dtype) {
      scenario.stack.training.reduce_dtype = dtype;
      return *simulate(scenario, plan);
    };
    const Prediction narrow = in(ReduceDtype::kAsComputed), wide = in(ReduceDtype::kAsAddedUp);
    CHECK(time_of(wide, StepTerm::kZeroCommunication) >
          time_of(narrow, StepTerm::kZeroCommunication));
    CHECK(wide.peak >= narrow.peak);
    plan.gradient_dtype = DType::kBFloat16;  // the accumulation dtype is then bf16 too
    CHECK(in(ReduceDtype::kAsComputed).step == in(ReduceDtype::kAsAddedUp).step);
  }
}

}  // namespace tpsim
