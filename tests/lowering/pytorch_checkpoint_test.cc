// Laws of PyTorch's activation checkpointing, gathered weights and allocator.
#include <catch2/catch.hpp>

#include "core/model/model_spec.h"
#include "lowering/passes/recompute.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/sim/with_parts.h"

namespace tpsim {
namespace {

using test::with;

Plan plan_with(const ModelSpec& model, Recompute recompute, int zero = 1) {
  Plan plan = test::plan_of(model, {.dp = 2}, 8);
  plan.zero = zero;
  plan.recompute = recompute;
  plan.attention = AttentionKind::kFlash;
  return plan;
}

double repeated(const Scenario& scenario, Recompute recompute) {
  return recomputed_flops(scenario, plan_with(scenario.model, recompute)).value();
}

LoweredAllocation traced(double mib) {
  LoweredAllocation made;
  made.bytes = static_cast<std::int64_t>(mib * kMiB);
  return made;
}

}  // namespace

TEST_CASE("recompute that stops early does not repeat the last GEMM of a block") {
  const ModelSpec model = test::small_llama();
  const Scenario whole = test::small_scenario(model);
  Scenario early = whole;
  early.stack.checkpoint_stops_early = true;
  const Plan plan = plan_with(model, Recompute::kFull);
  const Seconds gemms = time_of(with(whole, plan, {}), StepTerm::kMatmul);
  const Seconds less = time_of(with(early, plan, {}), StepTerm::kMatmul);
  CHECK(less < gemms);
  const double down = 2.0 * static_cast<double>(model.layers * plan.global_batch * model.seq *
                                                model.ffn_hidden * model.hidden);
  CHECK(repeated(whole, Recompute::kFull) - repeated(early, Recompute::kFull) == Approx(down));
  CHECK(with(early, plan, {}).peak == with(whole, plan, {}).peak);
  const Plan kept = plan_with(model, Recompute::kNone);
  CHECK(with(early, kept, {}).step == with(whole, kept, {}).step);
}

TEST_CASE("recompute with dropout repeats the whole block, because backward needs the mask") {
  ModelSpec model = test::small_llama();
  model.hidden_dropout = 0.1;
  const Scenario whole = test::small_scenario(model);
  Scenario early = whole;
  early.stack.checkpoint_stops_early = true;
  const Plan plan = plan_with(model, Recompute::kFull);
  CHECK(with(early, plan, {}).step == with(whole, plan, {}).step);
}

TEST_CASE("copies of gathered weights take time with ZeRO 3 alone") {
  const Scenario direct = test::small_scenario(test::small_llama());
  Scenario copied = direct;
  copied.stack.copies_gathered_weights = true;
  for (const int zero : {1, 3}) {
    const Plan plan = plan_with(direct.model, Recompute::kNone, zero);
    const Seconds before = time_of(with(direct, plan, {}), StepTerm::kElementwise);
    const Seconds after = time_of(with(copied, plan, {}), StepTerm::kElementwise);
    CAPTURE(zero);
    CHECK((zero == 3 ? after > before : after == before));
  }
}

TEST_CASE("FSDP's units stay gathered at the peak, with ZeRO 3 alone") {
  const Scenario freed = test::small_scenario(test::small_llama());
  const auto peak = [&](GatheredUnits units, int zero) {
    Scenario scenario = freed;
    scenario.stack.gathered_units = units;
    return with(scenario, plan_with(freed.model, Recompute::kNone, zero), {}).peak;
  };
  for (const GatheredUnits units : {GatheredUnits::kHead, GatheredUnits::kRoot})
    CHECK(peak(units, 1) == peak(GatheredUnits::kInUse, 1));
  CHECK(peak(GatheredUnits::kHead, 3) > peak(GatheredUnits::kInUse, 3));
  const Bytes both_ends(2 * 2.0 * static_cast<double>(freed.model.vocab * freed.model.hidden));
  const Bytes more = peak(GatheredUnits::kRoot, 3) - peak(GatheredUnits::kHead, 3);
  CHECK(more > Bytes());
  CHECK(more <= both_ends);
}

TEST_CASE("a layer's memory does not depend on plans that were priced before") {
  Scenario scenario = test::small_scenario(test::small_mixture());
  scenario.model.experts.dropless = true;
  for (const GatheredUnits units : {GatheredUnits::kHead, GatheredUnits::kRoot}) {
    scenario.stack.gathered_units = units;
    LayerPricer pricer(scenario);
    for (const std::int64_t pp : {1, 2}) {
      for (const std::int64_t ep : {1, 2, 4}) {
        Plan plan = test::plan_of(scenario.model, {.pp = pp, .dp = 4, .ep = ep}, 8);
        plan.zero = 3;
        CAPTURE(pp, ep);
        CHECK(predict(pricer, plan)->peak == simulate(scenario, plan)->peak);
      }
    }
  }
}

TEST_CASE("copies of column-parallel inputs take time and memory with tensor parallelism alone") {
  ModelSpec model = test::small_llama();
  model.seq *= 16;  // activations set the peak
  const Scenario shared = test::small_scenario(model);
  Scenario copied = shared;
  copied.stack.copies_column_inputs = true;
  const Plan whole = plan_with(model, Recompute::kNone);
  CHECK(with(copied, whole, {}).step == with(shared, whole, {}).step);
  Plan plan = test::plan_of(model, {.tp = 2}, 8);
  plan.attention = AttentionKind::kFlash;
  plan.micro_batch = 8;
  plan.recompute = Recompute::kNone;
  const auto before = with(shared, plan, {}), after = with(copied, plan, {});
  CHECK(time_of(after, StepTerm::kElementwise) > time_of(before, StepTerm::kElementwise));
  const StepTerm reductions = StepTerm::kTensorCommunication;
  CHECK(time_of(after, reductions) > time_of(before, reductions));
  // Two more copies for q, k and v, one more for gate and up.
  const double input = 2.0 * static_cast<double>(plan.micro_batch * model.seq * model.hidden);
  const double more = (after.peak - before.peak).value();
  CHECK(more == Approx(3 * input * static_cast<double>(model.layers)).epsilon(0.1));
  plan.recompute = Recompute::kFull;
  const double recomputed = (with(copied, plan, {}).peak - with(shared, plan, {}).peak).value();
  CHECK(recomputed < more / 2);
}

TEST_CASE("a large activation keeps what is left of its segment up to 1 MiB") {
  StackSpec stack;
  const AllocationRounding rounding = allocation_rounding(stack);
  CHECK(allocated_bytes(traced(15), rounding) == 16 * kMiB);
  CHECK(allocated_bytes(traced(16), rounding) == 16 * kMiB);
  CHECK(allocated_bytes(traced(14.5), rounding) == 14.5 * kMiB);
  CHECK(allocated_bytes(traced(9.5), rounding) == 9.5 * kMiB);
  stack.parts.expandable_segments = true;
  CHECK(allocated_bytes(traced(15), allocation_rounding(stack)) == 15 * kMiB);
}

}  // namespace tpsim
