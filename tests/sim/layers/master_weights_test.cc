// Laws of the dtype of weights, the kernels of experts, and the host time of gathers.
#include <catch2/catch.hpp>

#include "core/model/model_spec.h"
#include "sim/memory/stage_memory.h"
#include "sim/step/predict.h"
#include "tests/sim/layers/part_laws.h"

namespace tpsim {
namespace {

using test::changed_terms;
using test::parts_scenario;
using test::value_of;
using test::with;

double held(const Prediction& predicted, MemoryCategory category) {
  return predicted.memory[0].by_category[static_cast<std::size_t>(category)].value();
}

Plan plan_of_ranks(const ModelSpec& model, std::int64_t dp, int zero, std::int64_t batch) {
  Plan plan = test::plan_of(model, {.dp = dp}, batch);
  plan.zero = zero;
  plan.recompute = Recompute::kNone;
  plan.attention = AttentionKind::kFlash;
  return plan;
}

const PartValues kNone = value_of(StackPart::kMasterWeights, MasterWeights::kNone);
const PartValues kAutocast = value_of(StackPart::kMasterWeights, MasterWeights::kAutocast);

}  // namespace

TEST_CASE(
    "without master weights the optimizer needs four bytes per weight less, at any ZeRO stage") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const auto weights = static_cast<double>(parameter_count(scenario.model));
  for (const int zero : {0, 1, 3}) {
    Plan plan = plan_of_ranks(scenario.model, 4, zero, 8);
    const Prediction copied = with(scenario, plan, {}), pure = with(scenario, plan, kNone);
    const double spared =
        held(copied, MemoryCategory::kOptimizer) - held(pure, MemoryCategory::kOptimizer);
    CAPTURE(zero);
    CHECK(spared == Approx(4 * weights / (zero == 0 ? 1 : 4)).epsilon(0.02));
    CHECK(pure.step < copied.step);  // the optimizer step moves fewer bytes
    CHECK(changed_terms(copied, pure) == std::set<std::string>{"optimizer"});
    plan.dtype = DType::kFloat32;
    CHECK(with(scenario, plan, kNone).peak == with(scenario, plan, {}).peak);
    CHECK(with(scenario, plan, kNone).step == with(scenario, plan, {}).step);
  }
}

TEST_CASE("autocast keeps wider activations and casts weights for every micro-batch") {
  const Scenario scenario = parts_scenario(test::small_llama());
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    Plan plan = plan_of_ranks(scenario.model, 2, 0, 4);
    plan.recompute = recompute;
    const Prediction copied = with(scenario, plan, {}), cast = with(scenario, plan, kAutocast);
    CHECK(held(cast, MemoryCategory::kActivations) > held(copied, MemoryCategory::kActivations));
    CHECK(time_of(cast, StepTerm::kElementwise) > time_of(copied, StepTerm::kElementwise));
    CHECK(time_of(cast, StepTerm::kMatmul) == time_of(copied, StepTerm::kMatmul));
  }
  Plan wide = plan_of_ranks(scenario.model, 2, 0, 4);
  wide.dtype = DType::kFloat32;
  CHECK(with(scenario, wide, kAutocast).step == with(scenario, wide, {}).step);
}

TEST_CASE("autograd's gradients do not exist at the peak of activations") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const Plan once = plan_of_ranks(scenario.model, 2, 0, 1);
  const Plan twice = plan_of_ranks(scenario.model, 2, 0, 2);  // with gradients at the peak
  const StackSpec copied = scenario.stack, pure = with_parts(scenario.stack, kNone);
  CHECK(step_habits(pure, once).frees_gradients);
  CHECK_FALSE(step_habits(pure, twice).frees_gradients);
  CHECK_FALSE(step_habits(copied, once).frees_gradients);
  CHECK(with(scenario, once, kNone).peak < with(scenario, twice, kNone).peak);
  CHECK(with(scenario, once, {}).peak == with(scenario, twice, {}).peak);
}

TEST_CASE("compiled backward under autocast holds activations and all gradients at once") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const auto weights = static_cast<double>(parameter_count(scenario.model));
  Plan plan = plan_of_ranks(scenario.model, 1, 0, 1);
  PartValues compiled = kAutocast;
  compiled[StackPart::kCompile] = 1;
  const StackSpec stack = with_parts(scenario.stack, compiled);
  CHECK_FALSE(step_habits(stack, plan).frees_gradients);
  CHECK(step_habits(stack, plan).narrow_gradients == 0.5);
  CHECK(step_habits(with_parts(scenario.stack, kAutocast), plan).narrow_gradients == 0);
  plan.micro_batch = plan.global_batch = 64;  // the peak is that of the activations
  const Prediction whole = with(scenario, plan, compiled);
  CHECK(held(whole, MemoryCategory::kGradients) == Approx(4 * weights).epsilon(0.02));
  CHECK(held(whole, MemoryCategory::kWorkspace) >= 2 * weights);
}

TEST_CASE("a loss kernel that overwrites the logits holds eight bytes for each fp32 logit") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = plan_of_ranks(scenario.model, 1, 0, 4);
  plan.micro_batch = 4;
  const auto peak = [&](LossHead head) {
    PartValues parts = value_of(StackPart::kLossHead, head);
    parts[StackPart::kLogitsDtype] = 1;
    return held(with(scenario, plan, parts), MemoryCategory::kActivations);
  };
  const double logits =
      static_cast<double>(4 * scenario.model.seq * padded_vocab(scenario.model, 1));
  CHECK(peak(LossHead::kInModel) - peak(LossHead::kFused) == Approx(4 * logits).epsilon(0.05));
  CHECK(peak(LossHead::kChunked) < peak(LossHead::kFused));
}

TEST_CASE("selective recompute keeps no fp32 probabilities of a softmax in PyTorch's ops") {
  const Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = plan_of_ranks(scenario.model, 1, 0, 4);
  plan.attention = AttentionKind::kUnfused;
  const PartValues torch = value_of(StackPart::kAttentionKernel, AttentionKernel::kTorch);
  const auto kept = [&](Recompute recompute) {
    plan.recompute = recompute;
    return held(with(scenario, plan, torch), MemoryCategory::kActivations);
  };
  const auto s = static_cast<double>(scenario.model.seq);
  const auto heads = static_cast<double>(scenario.model.attention.heads);
  const auto others = static_cast<double>(scenario.model.layers - 1);  // one block runs at a time
  const double probabilities = heads * s * s;
  // Each other block frees at least the fp32 and the 16-bit probabilities.
  CHECK(kept(Recompute::kNone) - kept(Recompute::kSelective) >= 0.99 * 6 * probabilities * others);
}

TEST_CASE("an optimizer step with plain ops holds the root of a second moment") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const Plan plan = plan_of_ranks(scenario.model, 2, 0, 4);
  const auto copy = [&](const PartValues& parts) {
    return step_habits(with_parts(scenario.stack, parts), plan).optimizer_copy;
  };
  PartValues plain = value_of(StackPart::kOptimizerKernel, KernelFusion::kTorch);
  CHECK(copy(value_of(StackPart::kOptimizerKernel, KernelFusion::kFused)) == 0);
  CHECK(copy(plain) == Approx(4.0 / 12));
  plain.merge(PartValues(kNone));
  CHECK(copy(plain) == Approx(4.0 / 8));
  plain[StackPart::kOptimizerDtype] = static_cast<std::int64_t>(DType::kBFloat16);
  CHECK(copy(plain) == Approx(2.0 / 4));
}

TEST_CASE("looped experts take host time per expert") {
  Scenario scenario = parts_scenario(test::small_mixture());
  scenario.stack.host.per_expert_forward = Seconds(1e-3);
  scenario.stack.host.per_expert_backward = Seconds(2e-3);
  const Plan plan = plan_of_ranks(scenario.model, 2, 0, 4);
  const PartValues looped = value_of(StackPart::kExpertKernel, ExpertKernel::kLooped);
  const Prediction together = with(scenario, plan, {}), apart = with(scenario, plan, looped);
  const double blocks = static_cast<double>(scenario.model.layers);
  const double experts = static_cast<double>(scenario.model.experts.count);
  const double host = 2 * blocks * experts * 3e-3;  // two micro-batches
  CHECK(apart.step.value() > host);
  CHECK(apart.step.value() - together.step.value() > 0.9 * host);
  // A dense model has no loop.
  const Scenario dense = parts_scenario(test::small_llama());
  const Plan of_dense = plan_of_ranks(dense.model, 2, 0, 4);
  CHECK(with(dense, of_dense, looped).step == with(dense, of_dense, {}).step);
}

TEST_CASE("module hooks take host time only if ZeRO 3 gathers weights") {
  Scenario scenario = parts_scenario(test::small_llama());
  Scenario hooked = scenario;
  hooked.stack.host.per_gather = Seconds(5e-3);
  for (const int zero : {0, 2}) {
    const Plan plan = plan_of_ranks(scenario.model, 4, zero, 4);
    CHECK(with(hooked, plan, {}).step == with(scenario, plan, {}).step);
  }
  Plan plan = plan_of_ranks(scenario.model, 4, 3, 4);
  const double more = with(hooked, plan, {}).step.value() - with(scenario, plan, {}).step.value();
  plan.recompute = Recompute::kFull;
  const double with_recompute =
      with(hooked, plan, {}).step.value() - with(scenario, plan, {}).step.value();
  CHECK(more > 0);
  CHECK(with_recompute == Approx(1.5 * more).epsilon(0.1));  // three passes instead of two
}

}  // namespace tpsim
