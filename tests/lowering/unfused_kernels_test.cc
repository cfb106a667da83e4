// Laws of the kernels, loss heads and optimizers of several stacks: memory passes and memory of
// their ops.
#include "lowering/passes/unfused_kernels.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/sim/layers/part_laws.h"

namespace tpsim {
namespace {

using test::changed_terms;
using test::parts_plan;
using test::parts_scenario;
using test::value_of;
using test::with;

}  // namespace

TEST_CASE("plain ops cost at least their passes, and fused kernels are never slower") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const Plan plan = parts_plan(scenario.model);
  const Prediction fused = with(scenario, plan, {});
  for (const StackPart part : {StackPart::kNormKernel, StackPart::kRotaryKernel,
                               StackPart::kActivationKernel, StackPart::kOptimizerKernel}) {
    INFO(row_of(part).key);
    const Prediction plain = with(scenario, plan, {{part, row_of(part).words.back().value}});
    CHECK(plain.step > fused.step);
    CHECK(plain.peak >= fused.peak);
    // torch.compile fuses a layer's plain ops.
    PartValues compiled{{part, row_of(part).words.back().value}, {StackPart::kCompile, 1}};
    CHECK(with(scenario, plan, compiled).step <= plain.step);
  }
  OpRecord norm{.key = {OpKind::kNormForward,
                        DType::kBFloat16,
                        static_cast<std::uint8_t>(NormKind::kRmsNorm),
                        {1024, 4096}},
                .bytes = 4.0 * 1024 * 4096,
                .label = {ModelPart::kNorm, "norm"}};
  StackSpec stack;
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == 1);
  stack.parts.norm_kernel = KernelFusion::kTorch;
  // Cast to fp32, square, mean, scale, cast back, weight: 36 bytes per element instead of 4.
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == Approx(9));
  // An fp32 copy instead of the input, and the normalized values: 6 bytes instead of 2.
  CHECK(unfused_kernels_of(norm, stack, {}).kept.value() == Approx(4.0 * 1024 * 4096));
  norm.key.variant = static_cast<std::uint8_t>(NormKind::kLayerNorm);
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == 1);  // PyTorch's LayerNorm is fused
}

TEST_CASE("autograd adds the residual gradient of a norm by a separate op") {
  const auto fused = value_of(StackPart::kResidualGradient, KernelFusion::kFused);
  const auto apart = value_of(StackPart::kResidualGradient, KernelFusion::kTorch);
  for (const ModelSpec& model : {test::small_llama(), test::small_gpt()}) {
    const Scenario scenario = parts_scenario(model);
    const Plan plan = parts_plan(scenario.model);
    CHECK(with(scenario, plan, apart).step > with(scenario, plan, fused).step);
    PartValues compiled = apart;
    compiled[StackPart::kCompile] = 1;
    CHECK(with(scenario, plan, compiled).step <= with(scenario, plan, apart).step);
    // Sequence parallelism shards the addition.
    const auto costs = [&](bool sequence_parallel) {
      Plan sharded = plan;
      sharded.sequence_parallel = sequence_parallel;
      return (with(scenario, sharded, apart).step - with(scenario, sharded, fused).step).value();
    };
    CHECK(costs(true) < costs(false));
  }
  constexpr double kElements = 1024.0 * 4096;
  OpRecord norm{.key = {OpKind::kNormBackward,
                        DType::kBFloat16,
                        static_cast<std::uint8_t>(static_cast<int>(NormKind::kRmsNorm) | 2),
                        {1024, 4096}},
                .bytes = 4 * 2 * kElements,
                .label = {ModelPart::kNorm, "norm"}};
  StackSpec stack;
  stack.parts.residual_gradient = KernelFusion::kTorch;
  // Three passes of the norm, and two reads and a write of the sum, instead of four passes.
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == Approx(1.5));
  CHECK(unfused_kernels_of(norm, StackSpec(), {}).traffic == 1);
  norm.key.variant = static_cast<std::uint8_t>(NormKind::kRmsNorm);
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == 1);  // the norm has no residual
  // torch.compile sums the gain's gradient in separate passes, which include the residual gradient.
  stack.parts.norm_kernel = KernelFusion::kTorch;
  stack.parts.compile = true;
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == Approx(1.5));
  norm.key.variant |= 2;
  CHECK(unfused_kernels_of(norm, stack, {}).traffic == Approx(7.0 / 4));
}

TEST_CASE("a GELU that the model's module writes as a formula takes a pass per op") {
  constexpr double kElements = 1024.0 * 4096;
  const auto gelu = [&](OpKind kind, MlpKind mlp) {
    return OpRecord{.key = {kind,
                            DType::kBFloat16,
                            static_cast<std::uint8_t>(static_cast<int>(mlp) << 1),
                            {1024, 4096}},
                    .bytes = 2 * 2 * kElements,
                    .label = {ModelPart::kActivation, "gelu"}};
  };
  const OpRecord forward = gelu(OpKind::kBiasGeluForward, MlpKind::kGelu);
  StackSpec stack;
  stack.parts.norm_kernel = KernelFusion::kTorch;
  for (const ActivationOps ops : {ActivationOps::kSavedOps, ActivationOps::kFunctionOps}) {
    CHECK(unfused_kernels_of(forward, stack, ops).traffic == 1);  // the software has its own kernel
  }
  stack.parts.activation_kernel = ActivationKernel::kTorch;
  CHECK(unfused_kernels_of(forward, stack, ActivationOps::kOneKernel).traffic == 1);
  // Eight ops read ten tensors and write eight; three of them are saved besides the input.
  const UnfusedKernels saved = unfused_kernels_of(forward, stack, ActivationOps::kSavedOps);
  CHECK(saved.traffic == Approx(9));
  CHECK(saved.launches == 8);
  CHECK(saved.kept.value() == Approx(3 * 2 * kElements));
  const UnfusedKernels function = unfused_kernels_of(forward, stack, ActivationOps::kFunctionOps);
  CHECK(function.kept.value() == 0);
  const OpRecord backward = gelu(OpKind::kBiasGeluBackward, MlpKind::kGelu);
  CHECK(unfused_kernels_of(backward, stack, ActivationOps::kFunctionOps).traffic >
        unfused_kernels_of(backward, stack, ActivationOps::kSavedOps).traffic);
  // Under autocast the saved results are fp32.
  stack.parts.master_weights = MasterWeights::kAutocast;
  CHECK(unfused_kernels_of(forward, stack, ActivationOps::kSavedOps).kept.value() ==
        Approx(3 * 4 * kElements));
  // PyTorch's ReLU saves its result, which is the down projection's saved input.
  const OpRecord relu = gelu(OpKind::kBiasGeluForward, MlpKind::kRelu);
  CHECK(unfused_kernels_of(relu, stack, ActivationOps::kOneKernel).kept.value() ==
        Approx(-2 * kElements));
  stack.parts.compile = true;
  CHECK(unfused_kernels_of(forward, stack, ActivationOps::kSavedOps).traffic == 1);
}

TEST_CASE("a rotary kernel without a scale needs plain ops for YaRN") {
  ModelSpec model = test::small_llama();
  const auto step = [&](RotaryKernel kernel) {
    const Scenario scenario = parts_scenario(model);
    return with(scenario, parts_plan(scenario.model), value_of(StackPart::kRotaryKernel, kernel))
        .step;
  };
  CHECK(step(RotaryKernel::kFusedUnscaled) == step(RotaryKernel::kFused));
  RotaryStretch& stretch = model.attention.rotary.stretch;
  stretch.kind = RotaryScaling::kYarn;
  stretch.factor = 32;
  stretch.original_positions = 64;
  CHECK(step(RotaryKernel::kFusedUnscaled) == step(RotaryKernel::kTorch));
  CHECK(step(RotaryKernel::kFusedUnscaled) > step(RotaryKernel::kFused));
  stretch.mscale = stretch.mscale_all_dim = 1;  // magnitude 1, as in DeepSeek
  CHECK(step(RotaryKernel::kFusedUnscaled) == step(RotaryKernel::kFused));
}

TEST_CASE("torch.compile does not fuse rotary embeddings with complex numbers") {
  constexpr double kElements = 1024.0 * 32 * 128;
  OpRecord rotary{.key = {OpKind::kRotary, DType::kBFloat16, 0, {1024, 32, 128}},
                  .bytes = 2 * 2 * kElements,
                  .label = {ModelPart::kRotary, "rotary"}};
  StackSpec stack;
  stack.parts.rotary_kernel = RotaryKernel::kTorchComplex;
  // A read and a write in bf16 and four in fp32, instead of one read and one write.
  CHECK(unfused_kernels_of(rotary, stack, {}).traffic == Approx(5));
  stack.parts.compile = true;
  CHECK(unfused_kernels_of(rotary, stack, {}).traffic == Approx(5));
  CHECK(unfused_kernels_of(rotary, stack, {}).launches == 6);
  stack.parts.rotary_kernel = RotaryKernel::kTorch;
  CHECK(unfused_kernels_of(rotary, stack, {}).traffic == 1);
  CHECK(unfused_kernels_of(rotary, stack, {}).launches == 1);
}

TEST_CASE("overwritten gradients are not cleared, and a loss with one pass is shorter") {
  for (const ModelSpec& model : {test::small_llama(), test::small_bloom()}) {
    const Scenario scenario = parts_scenario(model);
    for (const int zero : {0, 1, 2, 3}) {
      Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 4}, 8);
      plan.zero = zero;
      const Prediction cleared = with(scenario, plan, {});
      const Prediction overwritten =
          with(scenario, plan, value_of(StackPart::kGradientAccumulation, 2));
      CHECK(overwritten.step < cleared.step);
      CHECK(overwritten.peak == cleared.peak);
      const Prediction online =
          with(scenario, plan, value_of(StackPart::kLossHead, LossHead::kOnline));
      CHECK(online.step < cleared.step);
      CHECK(online.peak == cleared.peak);
    }
  }
}

TEST_CASE("Megatron-LM's loss has seven passes instead of one") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const Plan plan = parts_plan(scenario.model);
  const auto of = [&](LossHead head) {
    return with(scenario, plan, value_of(StackPart::kLossHead, head));
  };
  const Prediction passes = of(LossHead::kVocabParallel);
  const Prediction fused = of(LossHead::kVocabParallelFused);
  CHECK(passes.step > fused.step);
  const std::set<std::string> changed = changed_terms(passes, fused);
  CHECK(changed.contains("elementwise"));
  for (const std::string& term : changed) {
    CAPTURE(term);  // waits for the slowest stage change with it
    CHECK((term == "elementwise" || term == "pipeline_bubble" || term == "stragglers"));
  }
}

TEST_CASE("Megatron-LM's softmax needs plain ops for heads that are not a multiple of four") {
  Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 1};
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  plan.micro_batch = 1;
  plan.attention = AttentionKind::kUnfused;
  const auto gain = [&](std::int64_t heads) {
    scenario.model.attention.heads = scenario.model.attention.kv_heads = heads;
    const auto step = [&](AttentionKernel kernel) {
      return with(scenario, plan, value_of(StackPart::kAttentionKernel, kernel)).step;
    };
    return step(AttentionKernel::kMegatron) - step(AttentionKernel::kBest);
  };
  CHECK(gain(8) == Seconds());
  CHECK(gain(6) > Seconds());
}

TEST_CASE("gradients of fp16 are divided by the loss scale in a separate pass") {
  Scenario scenario = parts_scenario(test::small_llama());
  Plan plan = parts_plan(scenario.model);
  const auto optimizer = [&](DType dtype, bool scales) {
    plan.dtype = dtype;
    scenario.stack.scales_loss = scales;
    return time_of(with(scenario, plan, {}), StepTerm::kOptimizer);
  };
  CHECK(optimizer(DType::kFloat16, true) > optimizer(DType::kFloat16, false));
  CHECK(optimizer(DType::kBFloat16, true) == optimizer(DType::kBFloat16, false));
}

TEST_CASE("loss heads with whole logits need more memory, chunked ones less") {
  const Scenario scenario = parts_scenario(test::small_llama());
  const Plan plan = parts_plan(scenario.model);
  const auto last_stage = [&](LossHead head) {
    return with(scenario, plan, value_of(StackPart::kLossHead, head)).memory.back().total();
  };
  CHECK(last_stage(LossHead::kEager) > last_stage(LossHead::kVocabParallel));
  CHECK(last_stage(LossHead::kGathered) > last_stage(LossHead::kEager));
  CHECK(last_stage(LossHead::kChunked) <= last_stage(LossHead::kVocabParallel));
}

}  // namespace tpsim
