// Parts of software as laws: each has the price of its mechanism and touches no other term.
#include "core/software/stack_parts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "sim/layers/plain_kernels.h"
#include "sim/layers/shard_groups.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/sim/with_parts.h"

namespace tpsim {
namespace {

using test::with;

Scenario scenario_of(ModelSpec model) {
  Scenario scenario = test::small_scenario(std::move(model));
  scenario.cluster.gpus_per_node = 4;
  scenario.cluster.nics_per_node = 4;
  return scenario;
}

Plan plan_for(const ModelSpec& model) {
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 2, .dp = 4}, 8);
  plan.recompute = Recompute::kNone;
  plan.attention = AttentionKind::kFlash;
  return plan;
}

template <class E>
PartValues value_of(StackPart part, E value) {
  return {{part, static_cast<std::int64_t>(value)}};
}

std::set<std::string> changed_terms(const Prediction& a, const Prediction& b) {
  std::set<std::string> changed;
  for (std::size_t i = 0; i < a.breakdown.size(); ++i) {
    const double was = a.breakdown[i].time.value(), is = b.breakdown[i].time.value();
    if (std::fabs(was - is) > 1e-9 * a.step.value()) {
      changed.insert(std::string(name_of(a.breakdown[i].kind)));
    }
  }
  return changed;
}

}  // namespace

TEST_CASE("every part has words, a value of its own and an option, and is read back") {
  for (const PartRow& row : part_rows()) {
    INFO(row.key);
    StackSpec stack;
    for (const PartWord& word : row.words) {
      row.set(stack, word.value);
      CHECK(row.get(stack) == word.value);
      CHECK(*parse_value(row, word.word) == word.value);
      CHECK(text_of(row, word.value) == word.word);
    }
    CHECK_FALSE(parse_value(row, "nonsense").ok());
    CHECK(row_of(row.part).key == row.key);
    CHECK(option_of(row.part).substr(0, 2) == "--");
  }
  CHECK(*parse_value(row_of(StackPart::kShardGroup), "16") == 16);
  CHECK(*parse_value(row_of(StackPart::kBlockingLaunches), "1") == 1);
}

TEST_CASE("plain ops cost at least their passes, and fused kernels are never slower") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = plan_for(scenario.model);
  const Prediction fused = with(scenario, plan, {});
  for (const StackPart part : {StackPart::kNormKernel, StackPart::kRotaryKernel,
                               StackPart::kActivationKernel, StackPart::kOptimizerKernel}) {
    INFO(row_of(part).key);
    const Prediction plain = with(scenario, plan, {{part, row_of(part).words.back().value}});
    CHECK(plain.step > fused.step);
    CHECK(plain.peak >= fused.peak);
    // Compiled, a layer's plain ops are fused again.
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
  CHECK(plain_kernel(norm, stack).traffic == 1);
  stack.parts.norm = KernelFusion::kTorch;
  // To fp32, square, mean, scale, back, weight: 36 bytes an element in place of 4.
  CHECK(plain_kernel(norm, stack).traffic == Approx(9));
  CHECK(plain_kernel(norm, stack).kept.value() == Approx(6.0 * 1024 * 4096));
  norm.key.variant = static_cast<std::uint8_t>(NormKind::kLayerNorm);
  CHECK(plain_kernel(norm, stack).traffic == 1);  // PyTorch's own is fused
}

TEST_CASE("autograd adds the gradient that bypassed a norm by an op of its own") {
  const auto fused = value_of(StackPart::kResidualGradient, KernelFusion::kFused);
  const auto apart = value_of(StackPart::kResidualGradient, KernelFusion::kTorch);
  for (const ModelSpec& model : {test::small_llama(), test::small_gpt()}) {
    const Scenario scenario = scenario_of(model);
    const Plan plan = plan_for(scenario.model);
    CHECK(with(scenario, plan, apart).step > with(scenario, plan, fused).step);
    PartValues compiled = apart;
    compiled[StackPart::kCompile] = 1;
    CHECK(with(scenario, plan, compiled).step <= with(scenario, plan, apart).step);
    // Sequence parallelism divides it.
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
  // Three passes of the norm, two reads and a write of the sum, in place of four.
  CHECK(plain_kernel(norm, stack).traffic == Approx(1.5));
  CHECK(plain_kernel(norm, StackSpec()).traffic == 1);
  norm.key.variant = static_cast<std::uint8_t>(NormKind::kRmsNorm);
  CHECK(plain_kernel(norm, stack).traffic == 1);  // nothing bypassed it
  // torch.compile sums the gain's gradient in passes of its own, and the residual's beside them.
  stack.parts.norm = KernelFusion::kTorch;
  stack.parts.compile = true;
  CHECK(plain_kernel(norm, stack).traffic == Approx(1.5));
  norm.key.variant |= 2;
  CHECK(plain_kernel(norm, stack).traffic == Approx(7.0 / 4));
}

TEST_CASE("a rotary kernel that takes no scale leaves YaRN's to plain ops") {
  ModelSpec model = test::small_llama();
  const auto step = [&](RotaryKernel kernel) {
    const Scenario scenario = scenario_of(model);
    return with(scenario, plan_for(scenario.model), value_of(StackPart::kRotaryKernel, kernel))
        .step;
  };
  CHECK(step(RotaryKernel::kFusedUnscaled) == step(RotaryKernel::kFused));
  RotaryStretch& stretch = model.attention.rotary.stretch;
  stretch.kind = RotaryScaling::kYarn;
  stretch.factor = 32;
  stretch.original_positions = 64;
  CHECK(step(RotaryKernel::kFusedUnscaled) == step(RotaryKernel::kTorch));
  CHECK(step(RotaryKernel::kFusedUnscaled) > step(RotaryKernel::kFused));
  stretch.mscale = stretch.mscale_all_dim = 1;  // magnitude 1, as DeepSeek has it
  CHECK(step(RotaryKernel::kFusedUnscaled) == step(RotaryKernel::kFused));
}

TEST_CASE("complex products of rotary positions are what torch.compile finds them to be") {
  constexpr double kElements = 1024.0 * 32 * 128;
  OpRecord rotary{.key = {OpKind::kRotary, DType::kBFloat16, 0, {1024, 32, 128}},
                  .bytes = 2 * 2 * kElements,
                  .label = {ModelPart::kRotary, "rotary"}};
  StackSpec stack;
  stack.parts.rotary = RotaryKernel::kTorchComplex;
  // Read and written in bf16, and in fp32 four times, in place of a read and a write.
  CHECK(plain_kernel(rotary, stack).traffic == Approx(5));
  stack.parts.compile = true;
  CHECK(plain_kernel(rotary, stack).traffic == Approx(5));
  CHECK(plain_kernel(rotary, stack).launches == 6);
  stack.parts.rotary = RotaryKernel::kTorch;
  CHECK(plain_kernel(rotary, stack).traffic == 1);
  CHECK(plain_kernel(rotary, stack).launches == 1);
}

TEST_CASE("a part changes the terms that it is about and no other") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = plan_for(scenario.model);
  const Prediction base = with(scenario, plan, {});
  // The pipeline waits for its slowest stage, and stragglers for all of it.
  const auto about = [&](const PartValues& parts, std::set<std::string> terms) {
    terms.insert({"pipeline_bubble", "stragglers", "host_wait"});
    for (const std::string& term : changed_terms(base, with(scenario, plan, parts))) {
      INFO(to_string(parts) << " changes " << term);
      CHECK(terms.contains(term));
    }
  };
  about(value_of(StackPart::kNormKernel, KernelFusion::kTorch), {"elementwise"});
  about(value_of(StackPart::kResidualGradient, KernelFusion::kFused), {"elementwise"});
  about(value_of(StackPart::kAttentionKernel, AttentionKernel::kFlash1), {"attention"});
  about(value_of(StackPart::kOptimizerKernel, KernelFusion::kTorch), {"optimizer"});
  about(value_of(StackPart::kTpOverlap, TpOverlap::kBackward), {"tensor_communication"});
  about(value_of(StackPart::kTpOverlap, TpOverlap::kReductions), {"tensor_communication"});
  about(value_of(StackPart::kGradientAccumulation, 2), {"optimizer"});
  about(value_of(StackPart::kLossHead, LossHead::kOnline), {"elementwise", "tensor_communication"});
  about(value_of(StackPart::kDataParallelSync, DataParallelSync::kSlices),
        {"gradient_reduction", "weight_gather"});
  about(value_of(StackPart::kDataParallelSync, DataParallelSync::kOwners),
        {"gradient_reduction", "weight_gather"});
  about(value_of(StackPart::kOverlapGradientReduction, 1), {"gradient_reduction"});
  about(value_of(StackPart::kP2pCalls, P2pCalls::kSerial), {"pipeline_transfer"});
  about(value_of(StackPart::kShardGroup, 2),
        {"gradient_reduction", "weight_gather", "optimizer", "gradient_clipping"});
}

TEST_CASE("sequence parallelism is a gain where backward's collectives run beside products") {
  const Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  const PartValues beside = value_of(StackPart::kTpOverlap, TpOverlap::kBackward);
  const Prediction none = with(scenario, plan, {}), hidden = with(scenario, plan, beside);
  CHECK(hidden.step < none.step);
  plan.sequence_parallel = true;
  CHECK(with(scenario, plan, beside).step < with(scenario, plan, {}).step);
}

TEST_CASE("sums of input gradients hide behind weight gradients, and gathers of inputs do not") {
  const Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  const auto tensor_time = [&](TpOverlap overlap) {
    const Prediction told = with(scenario, plan, value_of(StackPart::kTpOverlap, overlap));
    const auto found =
        std::find_if(told.breakdown.begin(), told.breakdown.end(),
                     [](const auto& t) { return name_of(t.kind) == "tensor_communication"; });
    REQUIRE(found != told.breakdown.end());
    return found->time;
  };
  CHECK(tensor_time(TpOverlap::kReductions) < tensor_time(TpOverlap::kNone));
  plan.sequence_parallel = true;
  CHECK(tensor_time(TpOverlap::kReductions) < tensor_time(TpOverlap::kNone));
  CHECK(tensor_time(TpOverlap::kBackward) < tensor_time(TpOverlap::kReductions));
}

TEST_CASE("inputs that are kept gathered cost memory and no second gather, unless ops run again") {
  const Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  plan.sequence_parallel = true;
  plan.recompute = Recompute::kNone;
  const PartValues kept = value_of(StackPart::kTpRecomputeAllgather, 0);
  const Prediction again = with(scenario, plan, {}), once = with(scenario, plan, kept);
  constexpr auto kTerm = StepTerm::kTensorCommunication;
  CHECK(time_of(once, kTerm) < time_of(again, kTerm));
  CHECK(once.peak > again.peak);
  const auto saved = [&] {
    return time_of(with(scenario, plan, {}), kTerm) - time_of(with(scenario, plan, kept), kTerm);
  };
  const Seconds everywhere = saved();
  plan.recompute = Recompute::kOps;  // of the blocks: the head gathers once
  CHECK(saved() > Seconds());
  CHECK(saved() < 0.5 * everywhere);
}

TEST_CASE("gradients that are overwritten are not cleared, and a loss of one pass is shorter") {
  for (const ModelSpec& model : {test::small_llama(), test::small_bloom()}) {
    const Scenario scenario = scenario_of(model);
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

TEST_CASE("calls one after the other keep the receiving stage waiting as well") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = plan_for(scenario.model);
  const Prediction paired = with(scenario, plan, {});
  const Prediction serial = with(scenario, plan, value_of(StackPart::kP2pCalls, P2pCalls::kSerial));
  CHECK(serial.step > paired.step);
  // On two stages each sends as often as it receives; that is gathered once all the same.
  const double twice = 2 * time_of(paired, StepTerm::kTransfer).value();
  CHECK(time_of(serial, StepTerm::kTransfer).value() < twice);
  CHECK(time_of(serial, StepTerm::kTransfer).value() > 0.75 * twice);
  PartValues beside = value_of(StackPart::kP2pCalls, P2pCalls::kSerial);
  beside[StackPart::kOverlapP2p] = 1;
  CHECK(with(scenario, plan, beside).step <= paired.step);
}

TEST_CASE("segments that expand leave no holes and cost no time") {
  Scenario scenario = scenario_of(test::small_llama());
  scenario.stack.memory.caching_allocator = true;
  const Plan plan = plan_for(scenario.model);
  const Prediction fixed = with(scenario, plan, {});
  const Prediction grown = with(scenario, plan, {{StackPart::kExpandableSegments, 1}});
  scenario.stack.memory.caching_allocator = false;
  const Prediction without_holes = with(scenario, plan, {});
  CHECK(grown.step == fixed.step);
  CHECK(grown.peak < fixed.peak);
  CHECK(grown.peak == without_holes.peak);
}

TEST_CASE("blocking launches cost what the stack says, on top of waiting") {
  Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = plan_for(scenario.model);
  const Prediction blocked = with(scenario, plan, {{StackPart::kBlockingLaunches, 1}});
  CHECK(blocked.step > with(scenario, plan, {}).step);
  scenario.stack.host.blocking_op = Seconds(1e-5);
  scenario.stack.host.blocking_collective = Seconds(4e-4);
  CHECK(with(scenario, plan, {{StackPart::kBlockingLaunches, 1}}).step > blocked.step);
  CHECK(with(scenario, plan, {{StackPart::kBlockingLaunches, 0}}).step < blocked.step);
}

TEST_CASE("shard groups hold more of the state and send less of it between nodes") {
  Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  plan.zero = 1;
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const Prediction all = with(scenario, plan, {});
  const Prediction node = with(scenario, plan, value_of(StackPart::kShardGroup, kShardOverNode));
  CHECK(node.peak > all.peak);
  CHECK(with(scenario, plan, value_of(StackPart::kShardGroup, 8)).step == all.step);
  scenario.stack.parts.shard_group = 4;
  CHECK(shard_ranks(scenario, plan) == 4);
  plan.degrees = {.tp = 2, .pp = 1, .dp = 4};
  CHECK(shard_ranks(scenario, plan) == 2);
  scenario.stack.parts.shard_group = 8;
  CHECK(shard_ranks(scenario, plan) == 4);
  const GroupPlacement data{.ranks = 8, .nodes = 2, .ranks_per_node = 4, .groups_per_node = 1};
  CHECK(shard_placement(data, 4) == GroupPlacement{4, 1, 4, 0});
  CHECK(replica_placement(data, 4) == GroupPlacement{2, 2, 1, 4});
}

TEST_CASE("owners all-reduce gradients, and each broadcasts what it owns at once") {
  Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  plan.zero = 1;
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const PartValues owners = value_of(StackPart::kDataParallelSync, DataParallelSync::kOwners);
  Plan whole = plan;
  whole.zero = 0;
  const Prediction owned = with(scenario, plan, owners);
  CHECK(time_of(owned, StepTerm::kGradientReduction) ==
        time_of(with(scenario, whole, {}), StepTerm::kGradientReduction));

  // More owners send the same bytes in more rounds, until each has one tensor.
  const auto broadcast = [&](std::int64_t dp, std::int64_t shards) {
    plan.degrees.dp = dp;
    PartValues parts = owners;
    parts[StackPart::kShardGroup] = shards;
    return time_of(with(scenario, plan, parts), StepTerm::kWeightGather);
  };
  CHECK(broadcast(8, 2) < broadcast(8, 4));
  CHECK(broadcast(8, 4) < broadcast(16, kShardOverAll));
}

TEST_CASE("gradients in buckets wait once a bucket for the network, and once a layer without") {
  Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  plan.degrees = {.tp = 1, .pp = 1, .dp = 64};
  plan.stage_layers = even_stage_layers(scenario.model.layers, 1, false);
  const auto reduction = [&](std::int64_t bucket) {
    scenario.stack.memory.reduction_bucket = bucket;
    return time_of(with(scenario, plan, {}), StepTerm::kGradientReduction);
  };
  const Seconds by_layer = reduction(0);
  CHECK(reduction(1'000'000'000) < by_layer);
  CHECK(reduction(1'000) > by_layer);
}

TEST_CASE("Megatron-LM's loss is seven passes where a fused kernel is one") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = plan_for(scenario.model);
  const auto of = [&](LossHead head) {
    return with(scenario, plan, value_of(StackPart::kLossHead, head));
  };
  const Prediction passes = of(LossHead::kVocabParallel);
  const Prediction fused = of(LossHead::kVocabParallelFused);
  CHECK(passes.step > fused.step);
  const std::set<std::string> changed = changed_terms(passes, fused);
  CHECK(changed.contains("elementwise"));
  for (const std::string& term : changed) {
    CAPTURE(term);  // what waits for the slowest stage moves with it
    CHECK((term == "elementwise" || term == "pipeline_bubble" || term == "stragglers"));
  }
}

TEST_CASE("Megatron-LM's softmax leaves heads that are no multiple of four to plain ops") {
  Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
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

TEST_CASE("gradients of fp16 are divided by the loss scale in a pass of their own") {
  Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  const auto optimizer = [&](DType dtype, bool scales) {
    plan.dtype = dtype;
    scenario.stack.scales_loss = scales;
    return time_of(with(scenario, plan, {}), StepTerm::kOptimizer);
  };
  CHECK(optimizer(DType::kFloat16, true) > optimizer(DType::kFloat16, false));
  CHECK(optimizer(DType::kBFloat16, true) == optimizer(DType::kBFloat16, false));
}

TEST_CASE("heads that keep whole logits need more memory, and those in chunks less") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = plan_for(scenario.model);
  const auto last_stage = [&](LossHead head) {
    return with(scenario, plan, value_of(StackPart::kLossHead, head)).memory.back().total();
  };
  CHECK(last_stage(LossHead::kEager) > last_stage(LossHead::kVocabParallel));
  CHECK(last_stage(LossHead::kGathered) > last_stage(LossHead::kEager));
  CHECK(last_stage(LossHead::kChunked) <= last_stage(LossHead::kVocabParallel));
}

TEST_CASE("what ops recompute lies between none and full in time and memory") {
  const Scenario scenario = scenario_of(test::small_llama());
  Plan plan = plan_for(scenario.model);
  const Prediction none = with(scenario, plan, {});
  plan.recompute = Recompute::kOps;
  const Prediction ops = with(scenario, plan, {});
  plan.recompute = Recompute::kFull;
  const Prediction full = with(scenario, plan, {});
  CHECK(none.step < ops.step);
  CHECK(ops.step < full.step);
  CHECK(full.peak < ops.peak);
  CHECK(ops.peak < none.peak);
}

}  // namespace tpsim
