// Laws of adapters beside frozen weights: parameters, FLOPs, memory and time.
#include "core/software/finetune.h"

#include <catch2/catch.hpp>

#include "lowering/passes/step_habits.h"
#include "lowering/trace/rank_trace.h"
#include "tests/sim/layers/part_laws.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::value_of;
using test::with;

constexpr auto kState = static_cast<std::size_t>(MemoryCategory::kOptimizer);
constexpr auto kWeights = static_cast<std::size_t>(MemoryCategory::kWeights);
constexpr auto kGradients = static_cast<std::size_t>(MemoryCategory::kGradients);

const PartValues kLora = value_of(StackPart::kFinetune, FinetuneMethod::kLora);
const PartValues kQlora = value_of(StackPart::kFinetune, FinetuneMethod::kQlora);

Scenario scenario_of(ModelSpec model) {
  Scenario scenario = test::small_scenario(std::move(model));
  scenario.stack.memory.allocation_granularity = Bytes(1);
  return scenario;
}

double bytes(const Prediction& prediction, std::size_t category) {
  return prediction.memory.front().by_category[category].value();
}

// Bytes that a rank of the reference model allocates once in a category.
double traced_bytes(const Scenario& scenario, const Plan& plan, MemoryCategory category) {
  const RankTrace trace = trace_rank(scenario.model, plan, scenario.stack.training, 0);
  double all = 0;
  for (std::size_t i = 0; i < trace.step; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind != ProgramEvent::Kind::kAllocate) continue;
    const AllocationRecord& made = trace.program.allocations[event.index];
    if (made.category == category) all += static_cast<double>(made.bytes);
  }
  return all;
}

}  // namespace

TEST_CASE("only adapters have gradients and optimizer state") {
  for (const ModelSpec& model : {test::small_llama(), test::small_mixture()}) {
    const Scenario scenario = scenario_of(model);
    const Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 1}, 4);
    const Prediction full = with(scenario, plan, {}), lora = with(scenario, plan, kLora);
    Finetune finetune;
    finetune.adapts = true;
    const TrainedCounts counts = trained_counts(model, finetune);
    const auto adapters = static_cast<double>(counts.adapters);
    INFO(model.name);
    CHECK(counts.frozen == parameter_count(model));
    CHECK(bytes(lora, kState) == Approx(12 * adapters).epsilon(0.05));
    CHECK(bytes(lora, kState) < 0.1 * bytes(full, kState));
    CHECK(bytes(lora, kWeights) == Approx(bytes(full, kWeights) + 2 * adapters).epsilon(0.01));
    CHECK(lora.peak < full.peak);
    CHECK(lora.model_tflops_per_gpu * lora.step.value() <
          0.75 * full.model_tflops_per_gpu * full.step.value());
  }
}

TEST_CASE("predicted memory of adapters is that of a traced rank") {
  Scenario scenario = scenario_of(test::small_llama());
  scenario.stack = with_parts(scenario.stack, kLora);
  for (const int zero : {0, 1, 2, 3}) {
    Plan plan = test::plan_of(scenario.model, {.tp = 2, .pp = 1, .dp = 2}, 4);
    plan.zero = zero;
    const Prediction found = with(scenario, plan, {});
    INFO("ZeRO " << zero);
    CHECK(bytes(found, kState) ==
          Approx(traced_bytes(scenario, plan, MemoryCategory::kOptimizer)).epsilon(0.02));
  }
}

TEST_CASE("quantized frozen weights take their bits, and time to dequantize") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 1}, 4);
  const Prediction lora = with(scenario, plan, kLora), qlora = with(scenario, plan, kQlora);
  const auto matrices = static_cast<double>(block_matrix_parameters(scenario.model));
  Finetune nf4;
  set_method(nf4, FinetuneMethod::kQlora);
  CHECK(base_weight_bytes(nf4, DType::kBFloat16) == Approx(4.127 / 8).epsilon(1e-3));
  const double saved = (2 - base_weight_bytes(nf4, DType::kBFloat16)) * matrices;
  CHECK(bytes(lora, kWeights) - bytes(qlora, kWeights) == Approx(saved).epsilon(0.02));
  CHECK(qlora.step > lora.step);
  PartValues int8 = kQlora;
  int8[StackPart::kBaseDtype] = static_cast<std::int64_t>(BaseDtype::kInt8);
  CHECK(bytes(with(scenario, plan, int8), kWeights) > bytes(qlora, kWeights));
}

TEST_CASE(
    "frozen weights have no gradient reduction, and shards of few bits are gathered as such") {
  const Scenario scenario = scenario_of(test::small_llama());
  Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 8}, 4);
  plan.zero = 0;
  const auto reduction = [&](const PartValues& parts) {
    return time_of(with(scenario, plan, parts), StepTerm::kGradientReduction);
  };
  CHECK(reduction(kLora) < 0.5 * reduction({}));
  plan.zero = 3;
  const auto gathers = [&](const PartValues& parts) {
    return time_of(with(scenario, plan, parts), StepTerm::kZeroCommunication);
  };
  CHECK(gathers(kQlora) < gathers(kLora));
  CHECK(gathers(kLora) < gathers({}));
}

TEST_CASE("peft's ops take longer than adapters inside the GEMMs") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 1}, 4);
  PartValues torch = kLora, wide = kLora, dropped = kLora;
  torch[StackPart::kLoraKernel] = static_cast<std::int64_t>(LoraKernel::kTorch);
  wide = torch;
  wide[StackPart::kLoraDtype] = static_cast<std::int64_t>(LoraDtype::kFloat32);
  dropped[StackPart::kLoraDropout] = 5;
  const Prediction fused = with(scenario, plan, kLora);
  CHECK(with(scenario, plan, torch).step > fused.step);
  CHECK(with(scenario, plan, wide).step > with(scenario, plan, torch).step);
  CHECK(with(scenario, plan, dropped).step > fused.step);
  CHECK(with(scenario, plan, dropped).peak > fused.peak);
}

TEST_CASE("embeddings, head and norms can be trained beside adapters") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 1}, 4);
  PartValues tables = kLora, norms = kLora;
  tables[StackPart::kTrainedParts] = part_bit(WeightPart::kEmbedding) | part_bit(WeightPart::kHead);
  norms[StackPart::kTrainedParts] =
      part_bit(WeightPart::kNorms) | part_bit(WeightPart::kOuterNorms);
  const double least = bytes(with(scenario, plan, kLora), kState);
  const auto table = static_cast<double>(scenario.model.vocab * scenario.model.hidden);
  const double copies = scenario.model.tied_embedding ? 1 : 2;
  CHECK(bytes(with(scenario, plan, tables), kState) - least ==
        Approx(12 * copies * table).epsilon(0.05));
  CHECK(bytes(with(scenario, plan, norms), kState) > least);
  CHECK(bytes(with(scenario, plan, norms), kGradients) >
        bytes(with(scenario, plan, kLora), kGradients));
}

TEST_CASE("FLOPs of frozen runs are those of the executed GEMMs") {
  for (const ModelSpec& model : {test::small_llama(), test::small_bloom()}) {
    for (const Finetune& finetune :
         {Finetune{.selects = true}, Finetune{.selects = true, .layers = 2},
          Finetune{.selects = true, .trained = kAttentionWeights, .layers = -1},
          Finetune{.selects = true, .trained = part_bit(WeightPart::kHead)},
          Finetune{.selects = true,
          .trained = kMlpWeights | part_bit(WeightPart::kEmbedding),
          .layers = 1}}) {
      Scenario scenario = scenario_of(model);
      scenario.stack.training.finetune = finetune;
      Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 1}, 4);
      plan.recompute = Recompute::kNone;
      double executed = 0;
      const Program program = trace_rank(model, plan, scenario.stack.training, 0).program;
      for (const OpRecord& op : program.ops) {
        if (op.key.kind == OpKind::kMatmul) executed += op.flops;
      }
      ModelSpec padded = model;  // the executed head has the padded vocabulary
      padded.vocab = padded_vocab(model, 1);
      INFO(model.name << " " << finetune.trained << " " << finetune.layers);
      CHECK(finetune_flops_per_step(padded, finetune, plan.global_batch).value() ==
            Approx(executed).epsilon(0.01));
    }
  }
}

TEST_CASE("counts of trained weights are those of the executed program") {
  for (const ModelSpec& model : {test::small_llama(), test::small_bloom(), test::small_mixture()}) {
    for (std::size_t i = 0; i < 14; ++i) {
      const auto part = static_cast<WeightPart>(i);
      if (part == WeightPart::kAdapters) continue;
      const bool splits_experts = has_experts(model) && (part_bit(part) & kMlpWeights) != 0;
      if (splits_experts) continue;  // refused
      Finetune finetune{.selects = true, .trained = part_bit(part), .layers = 2};
      const TrainedCounts counts = trained_counts(model, finetune);
      CHECK(counts.trained + counts.frozen == parameter_count(model));
      if (counts.trained == 0) continue;
      Scenario scenario = scenario_of(model);
      scenario.stack.training.finetune = finetune;
      const Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 1}, 4);
      INFO(model.name << " " << name_of(part));
      // Tensors are padded to 64 elements, and the vocabulary.
      CHECK(traced_bytes(scenario, plan, MemoryCategory::kOptimizer) / 12 ==
            Approx(static_cast<double>(counts.trained)).epsilon(0.1));
    }
  }
}

TEST_CASE("fewer trained layers need less memory and time") {
  const Scenario scenario = scenario_of(test::small_llama());
  Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 2}, 4);
  plan.recompute = Recompute::kNone;
  Prediction more = with(scenario, plan, {});
  for (std::int64_t layers = scenario.model.layers; layers > 0; layers /= 2) {
    PartValues parts = value_of(StackPart::kFinetune, FinetuneMethod::kFreeze);
    parts[StackPart::kTrainedLayers] = layers;
    const Prediction less = with(scenario, plan, parts);
    INFO(layers);
    CHECK(less.peak < more.peak);
    CHECK(less.step < more.step);
    more = less;
  }
}

TEST_CASE("weights on the host free the GPU, take host memory, and wait for the link") {
  Scenario scenario = scenario_of(test::small_llama());
  for (const std::int64_t dp : {1, 2}) {
    Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = dp}, 4);
    plan.zero = 3;
    plan.offload = Offload::kOptimizer;
    const Prediction optimizer = with(scenario, plan, {});
    plan.offload = Offload::kParameters;
    const Prediction all = with(scenario, plan, {});
    INFO(dp);
    CHECK(bytes(all, kWeights) < bytes(optimizer, kWeights));
    CHECK(bytes(all, kState) == 0);
    CHECK(all.host_memory > Bytes(12.0 * static_cast<double>(parameter_count(scenario.model))));
    Scenario slow = scenario;
    slow.cluster.host.link = 0.01 * slow.cluster.host.link;
    CHECK(with(slow, plan, {}).step > all.step);
    slow.cluster.host.memory = all.host_memory - Bytes(1);
    CHECK(with(slow, plan, {}).p_oom == 1);
  }
}

TEST_CASE("a checkpoint of adapters has no frozen weights") {
  const Scenario scenario = scenario_of(test::small_llama());
  const Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 1}, 4);
  const StackSpec lora = with_parts(scenario.stack, kLora);
  const auto adapters =
      static_cast<double>(trained_counts(scenario.model, lora.training.finetune).adapters);
  CHECK(checkpoint_size(scenario.model, plan, lora).value() == Approx(14 * adapters));
}

}  // namespace tpsim
