// Laws of grouped queries in unfused attention: merged GEMMs do the same work.
#include "lowering/passes/attention_heads.h"

#include <catch2/catch.hpp>

#include "lowering/trace/trace.h"
#include "sim/layers/memory_change.h"
#include "sim/step/predict.h"
#include "tests/sim/with_parts.h"

namespace tpsim {
namespace {

struct Work {
  double flops = 0, bytes = 0;
  std::int64_t products = 0, others = 0;
};

Work work_of(const LoweredLayer& layer, Phase phase) {
  Work work;
  for_each_op(layer, phase, [&](const LoweredOp& op) {
    work.flops += op.flops;
    work.bytes += op.bytes;
    const bool is_core =
        op.key.kind == OpKind::kMatmul && op.label.part == ModelPart::kAttentionCore;
    ++(is_core ? work.products : work.others);
  });
  return work;
}

Plan unfused_plan(const ModelSpec& model) {
  Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 1}, 8);
  plan.attention = AttentionKind::kUnfused;
  return plan;
}

}  // namespace

TEST_CASE("merged GEMMs of grouped queries do the same work in fewer launches") {
  ModelSpec model = test::small_llama();
  model.attention.kv_heads = model.attention.heads / 4;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective}) {
    Plan plan = unfused_plan(model);
    plan.recompute = recompute;
    const LoweredLayer apart =
        as_traced(LayerKind::kBlock, trace_layers(LayerKind::kBlock, model, plan, {}));
    LoweredLayer merged = apart;
    merge_head_groups(merged, heads_per_group(model.attention, 1));
    for (const Phase phase : all_of<Phase>()) {
      const Work a = work_of(apart, phase), b = work_of(merged, phase);
      CHECK(a.flops == Approx(b.flops));
      CHECK(b.bytes <= a.bytes);  // only sums over the GEMMs of a group read their result
      CHECK(a.products == 4 * b.products);
      CHECK(a.others == b.others);
      const auto memory = [&](const LoweredLayer& layer) {
        return memory_change(layer, {phase}, {Bytes(512)});
      };
      CHECK(memory(apart).highest == memory(merged).highest);
      CHECK(memory(apart).left == memory(merged).left);
    }
  }
}

TEST_CASE("heads per group are counted on one tensor-parallel rank") {
  AttentionShape attention;
  attention.heads = 32;
  attention.kv_heads = 8;
  CHECK(heads_per_group(attention, 1) == 4);
  CHECK(heads_per_group(attention, 8) == 4);
  CHECK(heads_per_group(attention, 16) == 2);  // two ranks share a key/value head
  CHECK(heads_per_group(attention, 32) == 1);
}

TEST_CASE("fewer key/value heads are never slower with unfused attention") {
  ModelSpec model = test::small_llama();
  Seconds before(1e9);
  for (std::int64_t heads = model.attention.heads; heads >= 1; heads /= 2) {
    model.attention.kv_heads = heads;
    const Seconds step = test::with(test::small_scenario(model), unfused_plan(model), {}).step;
    CHECK(step <= before);
    before = step;
  }
}

}  // namespace tpsim
