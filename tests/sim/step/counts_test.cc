// Counted parameters, FLOPs and optimizer state agree with the traced program.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "lowering/passes/lower.h"
#include "lowering/passes/recompute.h"
#include "lowering/trace/trace.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/sim/with_parts.h"

namespace tpsim {
namespace {

// One dense block, then blocks with latent attention, experts and a shared expert.
ModelSpec small_latent() {
  ModelSpec model = test::small_llama();
  model.name = "small-latent";
  model.family = "deepseek_v3";
  AttentionShape& attention = model.attention;
  attention.kv_heads = attention.heads;
  attention.head_dim = 48;
  attention.latent = {.q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .value_dim = 32};
  BlockShape mixture = block_of_kind(model, 0), dense = mixture;
  mixture.ffn_hidden = 256;
  mixture.experts = {.count = 4, .per_token = 2, .dropless = true, .shared_ffn = 256};
  set_blocks(model, {dense, mixture, mixture, mixture, mixture, mixture, mixture, mixture});
  return model;
}

// FLOP counts as in papers: no expert gets more tokens than the mean.
ModelSpec balanced(ModelSpec model) {
  for (BlockShape& block : model.other_blocks) block.experts.capacity_factor = 1;
  model.experts.capacity_factor = 1;
  return model;
}

std::vector<ModelSpec> models() {
  return {test::small_gpt(),    test::small_llama(),     balanced(test::small_mixture()),
          small_latent(),       test::small_delta_net(), balanced(test::small_hybrid()),
          test::small_planned()};
}

Plan one_rank(const ModelSpec& model, Recompute recompute) {
  Plan plan = test::plan_of(model, {}, 1);
  plan.micro_batch = plan.global_batch = 1;
  plan.attention = AttentionKind::kFlash;
  plan.recompute = recompute;
  return plan;
}

double product_flops(const LoweredLayer& layer, Phase phase) {
  double flops = 0;
  for_each_op(layer, phase,
              [&](const LoweredOp& op) { flops += op.key.kind == OpKind::kMatmul ? op.flops : 0; });
  return flops;
}

LoweredLayer traced(const ModelSpec& model, LayerKind kind, std::int64_t block) {
  const ModelSpec one = with_block_kind(model, block);
  return as_traced(kind, trace_layers(kind, one, one_rank(model, Recompute::kNone), {}));
}

double forward_products(const ModelSpec& model, LayerKind kind, std::int64_t block = 0) {
  return product_flops(traced(model, kind, block), Phase::kForward);
}

double recomputed_products(const ModelSpec& model, std::int64_t modules) {
  Scenario scenario;
  scenario.model = model;
  scenario.stack.parts.recompute_modules = modules;
  const Plan plan = one_rank(model, Recompute::kSelective);
  double flops = 0;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const ModelSpec block = with_block_kind(model, kind);
    LoweredLayer layer = traced(model, LayerKind::kBlock, kind);
    recompute(layer, {scenario, plan, block});
    flops +=
        static_cast<double>(blocks_of_kind(model, kind)) * product_flops(layer, Phase::kRecompute);
  }
  return flops;
}

double recomputed(const ModelSpec& model, const Plan& plan, std::int64_t modules = 0) {
  Scenario scenario;
  scenario.model = model;
  scenario.stack.parts.recompute_modules = modules;
  return recomputed_flops(scenario, plan).value();
}

}  // namespace

TEST_CASE("FLOPs of recomputed modules equal those of the repeated GEMMs") {
  for (const ModelSpec& model : models()) {
    const Plan plan = one_rank(model, Recompute::kSelective);
    double most = 0;
    for (const RecomputeModule module : all_of<RecomputeModule>()) {
      if (module == RecomputeModule::kCoreAttention) continue;
      INFO(model.name << " " << name_of(module));
      const double counted = recomputed(model, plan, bit(module));
      CHECK(counted == Approx(recomputed_products(model, bit(module))).epsilon(1e-12));
      most = std::max(most, counted);
    }
    CHECK(most > 0);
  }
}

TEST_CASE("a recomputed attention core counts only blocks with attention") {
  for (const ModelSpec& model : models()) {
    if (has_planned_ops(model)) continue;  // tests/laws/counts.py checks them
    const Plan plan = one_rank(model, Recompute::kSelective);
    double cores = 0;
    for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
      const ModelSpec one = with_block_kind(model, kind);
      if (one.mixer != MixerKind::kAttention) continue;
      const auto s = static_cast<double>(model.seq);
      const double widths = static_cast<double>(query_width(one) + attention_width(one));
      cores += static_cast<double>(layers_of_kind(model, kind)) * 2 * s * s * widths;
    }
    INFO(model.name);
    CHECK(recomputed(model, plan, bit(RecomputeModule::kCoreAttention)) == Approx(cores));
  }
}

TEST_CASE("each recomputed block of a chunk adds its own FLOPs, up to those of full recompute") {
  for (const ModelSpec& model : models()) {
    Plan plan = one_rank(model, Recompute::kBlocks);
    plan.degrees.pp = 2;
    plan.stage_layers = {5, 3};
    double before = 0;
    for (std::int64_t n = 1; n < 5; ++n) {
      plan.recompute_blocks = n;
      const double now = recomputed(model, plan);
      double added = 0;
      for (const std::int64_t layer : {n - 1, 5 + n - 1}) {
        if (layer >= (layer < 5 ? 5 : 8)) continue;
        const ModelSpec one = with_block_kind(model, block_kind(model, layer));
        added += block_forward_flops(one).total();
      }
      INFO(model.name << " blocks:" << n);
      CHECK(now - before == Approx(added));
      before = now;
    }
    const ModelSpec last = with_block_kind(model, block_kind(model, 4));
    plan.recompute = Recompute::kFull;
    CHECK(recomputed(model, plan) == Approx(before + block_forward_flops(last).total()));
  }
}

TEST_CASE("counted FLOPs of a block equal those of its traced GEMMs") {
  for (const ModelSpec& model : models()) {
    for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
      INFO(model.name << " kind " << kind);
      const double counted = block_forward_flops(with_block_kind(model, kind)).products();
      CHECK(counted == Approx(forward_products(model, LayerKind::kBlock, kind)).epsilon(1e-12));
    }
  }
}

TEST_CASE("FLOPs and weights of MTP layers equal the traced ones") {
  for (ModelSpec model : models()) {
    model.vocab = 5120;  // without vocab padding
    ModelSpec more = model;
    more.ends.prediction_layers = 2;
    std::int64_t weights = 0, idle = 0;
    double flops = 0;
    for (const std::int64_t kind : prediction_kinds(model)) {
      const ModelSpec one = with_block_kind(model, kind);
      weights += 2 * block_parameter_count(one);
      idle += 2 * (one.experts.count - one.experts.per_token) * mlp_matrices(one) *
              expert_width(one) * one.ffn_hidden;
      flops += 2 * block_forward_flops(one).total();
    }
    INFO(model.name);
    CHECK(parameter_count(more) - parameter_count(model) == weights);
    CHECK(active_parameter_count(more) - active_parameter_count(model) == weights - idle);
    const double logits = forward_products(model, LayerKind::kHead);
    const double added = 3 * (flops + 2 * logits);
    CHECK((model_flops_per_step(more, 1) - model_flops_per_step(model, 1)).value() ==
          Approx(added));
    const Plan full = one_rank(model, Recompute::kFull);
    CHECK(recomputed(more, full) - recomputed(model, full) == Approx(flops));

    const auto held = [&](const ModelSpec& of) {
      const Prediction predicted = simulate(test::small_scenario(of), full).value();
      return predicted.memory[0]
          .by_category[static_cast<std::size_t>(MemoryCategory::kWeights)]
          .value();
    };
    // Allocated sizes are rounded up.
    CHECK(held(more) - held(model) == Approx(2.0 * static_cast<double>(weights)).epsilon(0.01));
  }
}

TEST_CASE("fp32 shards without a 16-bit copy save memory only with ZeRO 3 in bf16") {
  const ModelSpec model = test::small_llama();
  Scenario twice = test::small_scenario(model), once = twice;
  once.stack.parts.master_weights = MasterWeights::kCast;
  const auto spared = [&](int zero, DType dtype) {
    Plan plan = test::plan_of(model, {.dp = 4}, 4);
    plan.zero = zero;
    plan.dtype = dtype;
    const auto held = [&](const Scenario& scenario) {
      return simulate(scenario, plan).value().memory[0].total().value();
    };
    return held(twice) - held(once);
  };
  const double shards = 2.0 * static_cast<double>(parameter_count(model)) / 4;
  CHECK(spared(3, DType::kBFloat16) == Approx(shards).epsilon(0.02));
  CHECK(spared(2, DType::kBFloat16) == 0);
  CHECK(spared(3, DType::kFloat32) == 0);
}

TEST_CASE("16-bit moments need half of the memory, for any dtype of weights") {
  const ModelSpec model = test::small_llama();
  Scenario wide = test::small_scenario(model), narrow = wide;
  narrow.stack.parts.optimizer_dtype = DType::kBFloat16;
  struct Case {
    DType dtype;
    double wide, narrow;  // optimizer state, in bytes per weight
  };
  for (const Case& one : {Case{DType::kFloat32, 8, 4}, Case{DType::kBFloat16, 12, 8}}) {
    for (const int zero : {0, 1}) {
      Plan plan = test::plan_of(model, {.dp = 2}, 2);
      plan.dtype = one.dtype;
      plan.zero = zero;
      const Prediction before = simulate(wide, plan).value(),
                       after = simulate(narrow, plan).value();
      const auto state = [](const Prediction& predicted) {
        return predicted.memory[0]
            .by_category[static_cast<std::size_t>(MemoryCategory::kOptimizer)]
            .value();
      };
      INFO(name_of(one.dtype) << " zero " << zero);
      CHECK(state(after) / state(before) == Approx(one.narrow / one.wide).epsilon(1e-3));
      CHECK(after.step < before.step);
    }
  }
}

}  // namespace tpsim
