#include "tests/reference_model/training/golden_layouts.h"

namespace tpsim::test {

Plan golden_plan(const ModelSpec& model, ParallelDegrees degrees, std::int64_t micro_batch) {
  Plan plan;
  plan.degrees = degrees;
  plan.micro_batch = micro_batch;
  plan.zero = 0;
  plan.recompute = Recompute::kNone;
  plan.stage_layers = even_stage_layers(model.layers, degrees.pp, false);
  return plan;
}

std::vector<GoldenLayout> golden_layouts(const ModelSpec& model) {
  std::vector<GoldenLayout> list;
  const auto add = [&](const std::string& name, ParallelDegrees degrees, std::int64_t micro_batch,
                       auto change) {
    GoldenLayout layout{name, golden_plan(model, degrees, micro_batch), {}};
    change(layout);
    layout.plan.global_batch = 8;
    if (validate(layout.plan, model).ok()) list.push_back(layout);
  };
  const auto nothing = [](GoldenLayout&) {};
  add("one rank", {1, 1, 1, 1}, 8, nothing);
  add("one rank, micro-batches", {1, 1, 1, 1}, 2, nothing);
  add("full recompute", {1, 1, 1, 1}, 4,
      [](GoldenLayout& l) { l.plan.recompute = Recompute::kFull; });
  add("some blocks recomputed", {1, 1, 1, 1}, 4, [](GoldenLayout& l) {
    l.plan.recompute = Recompute::kBlocks;
    l.plan.recompute_blocks = 2;
  });
  add("one block of every stage recomputed, zero 3", {1, 2, 2, 1}, 2, [](GoldenLayout& l) {
    l.plan.recompute = Recompute::kBlocks;
    l.plan.recompute_blocks = 1;
    l.plan.zero = 3;
  });
  add("selective", {1, 1, 1, 1}, 4,
      [](GoldenLayout& l) { l.plan.recompute = Recompute::kSelective; });
  add("flash", {1, 1, 1, 1}, 4, [](GoldenLayout& l) { l.plan.attention = AttentionKind::kFlash; });
  for (const std::int64_t tp : {2, 3}) {
    const std::string name = "tp" + std::to_string(tp);
    add(name, {tp, 1, 1, 1}, 4, nothing);
    add(name + " flash", {tp, 1, 1, 1}, 4,
        [](GoldenLayout& l) { l.plan.attention = AttentionKind::kFlash; });
    add(name + " sequence parallel", {tp, 1, 1, 1}, 4,
        [](GoldenLayout& l) { l.plan.sequence_parallel = true; });
    add(name + " sequence parallel, full recompute, pp2", {tp, 2, 1, 1}, 2, [](GoldenLayout& l) {
      l.plan.sequence_parallel = true;
      l.plan.recompute = Recompute::kFull;
    });
  }
  for (const std::int64_t pp : {2, 4}) {
    const std::string name = "pp" + std::to_string(pp);
    add(name, {1, pp, 1, 1}, 2, nothing);
    add(name + " gpipe", {1, pp, 1, 1}, 2,
        [](GoldenLayout& l) { l.plan.schedule = ScheduleKind::kGpipe; });
    add(name + " zb-h1", {1, pp, 1, 1}, 2,
        [](GoldenLayout& l) { l.plan.schedule = ScheduleKind::kZbH1; });
    add(name + " one micro-batch", {1, pp, 1, 1}, 8, nothing);
  }
  add("interleaved", {1, 2, 1, 1}, 1, [&](GoldenLayout& l) {
    l.plan.schedule = ScheduleKind::kInterleaved;
    l.plan.virtual_stages = 2;
    l.plan.stage_layers = even_stage_layers(model.layers, 4, false);
  });
  add("uneven stages", {1, 2, 1, 1}, 2, [](GoldenLayout& l) { l.plan.stage_layers = {1, 3}; });
  for (const int zero : {0, 1, 2, 3}) {
    const auto set = [zero](GoldenLayout& l) { l.plan.zero = zero; };
    const std::string name = " zero" + std::to_string(zero);
    add("dp2" + name, {1, 1, 2, 1}, 2, set);
    add("dp4" + name, {1, 1, 4, 1}, 1, set);
    add("tp2 dp2" + name, {2, 1, 2, 1}, 2, set);
    add("pp2 dp2" + name, {1, 2, 2, 1}, 2, set);
    add("tp2 pp2 dp2 sp" + name, {2, 2, 2, 1}, 1, [zero](GoldenLayout& l) {
      l.plan.zero = zero;
      l.plan.sequence_parallel = true;
      l.plan.recompute = Recompute::kFull;
    });
  }
  for (const int zero : {0, 1, 2, 3}) {
    add("dp2 offloaded optimizer, zero" + std::to_string(zero), {1, 1, 2, 1}, 2,
        [zero](GoldenLayout& l) {
          l.plan.zero = zero;
          l.plan.offload = Offload::kOptimizer;
        });
  }
  for (const std::int64_t dp : {1, 2}) {
    add("weights on the host, dp" + std::to_string(dp), {1, 1, dp, 1}, 2, [](GoldenLayout& l) {
      l.plan.zero = 3;
      l.plan.offload = Offload::kParameters;
    });
  }
  for (const std::int64_t cp : {2, 3, 4}) {
    const std::string name = "cp" + std::to_string(cp);
    add(name, {1, 1, 1, cp}, 4, nothing);
    add(name + " flash", {1, 1, 1, cp}, 2,
        [](GoldenLayout& l) { l.plan.attention = AttentionKind::kFlash; });
    add(name + " tp2 sequence parallel", {2, 1, 1, cp}, 4, [](GoldenLayout& l) {
      l.plan.sequence_parallel = true;
      l.plan.recompute = Recompute::kSelective;
    });
  }
  add("cp2 tp3 sequence parallel", {3, 1, 1, 2}, 4,
      [](GoldenLayout& l) { l.plan.sequence_parallel = true; });
  for (const int zero : {0, 1, 2, 3}) {
    add("cp2 dp2 zero" + std::to_string(zero), {1, 1, 2, 2}, 2, [zero](GoldenLayout& l) {
      l.plan.zero = zero;
      l.plan.recompute = Recompute::kFull;
    });
  }
  add("cp2 tp2 pp2 zero1 sequence parallel, flash", {2, 2, 1, 2}, 2, [](GoldenLayout& l) {
    l.plan.zero = 1;
    l.plan.sequence_parallel = true;
    l.plan.attention = AttentionKind::kFlash;
    l.plan.recompute = Recompute::kFull;
  });
  add("cp2 interleaved", {1, 2, 1, 2}, 1, [&](GoldenLayout& l) {
    l.plan.schedule = ScheduleKind::kInterleaved;
    l.plan.virtual_stages = 2;
    l.plan.stage_layers = even_stage_layers(model.layers, 4, false);
  });
  add("cp2 dp2 pp2 gpipe, tp-pp-dp rank order", {1, 2, 2, 2}, 1, [](GoldenLayout& l) {
    l.plan.schedule = ScheduleKind::kGpipe;
    l.plan.rank_order = RankOrder::kTpPpDp;
    l.plan.zero = 1;
  });
  add("zero1 all-reduced gradients", {1, 1, 2, 1}, 2, [](GoldenLayout& l) {
    l.plan.zero = 1;
    l.options.gradient_reduction = GradientReduction::kAllReduce;
  });
  add("whole activations between stages", {2, 2, 1, 1}, 2,
      [](GoldenLayout& l) { l.options.pipeline_sends = PipelineSends::kWhole; });
  add("tp-pp-dp rank order", {1, 2, 2, 1}, 2, [](GoldenLayout& l) {
    l.plan.rank_order = RankOrder::kTpPpDp;
    l.plan.zero = 1;
  });
  return list;
}

std::vector<GoldenLayout> few_golden_layouts(const ModelSpec& model) {
  std::vector<GoldenLayout> list;
  const bool routed = has_experts(model);
  const auto add = [&](ParallelDegrees degrees, std::int64_t micro_batch, auto change) {
    GoldenLayout layout{"", golden_plan(model, degrees, micro_batch), {}};
    layout.plan.sequence_parallel = routed && degrees.tp > 1;
    change(layout.plan);
    layout.plan.global_batch = 8;
    layout.name = std::to_string(list.size());
    if (validate(layout.plan, model).ok()) list.push_back(layout);
  };
  const auto flash = [](Plan& p) { p.attention = AttentionKind::kFlash; };
  add({1, 1, 1, 1}, 4, [](Plan&) {});
  add({1, 1, 1, 1}, 8, flash);
  add({1, 1, 1, 1}, 4, [](Plan& p) { p.recompute = Recompute::kFull; });
  add({1, 1, 1, 1}, 4, [](Plan& p) { p.recompute = Recompute::kSelective; });
  add({2, 1, 1, 1}, 4, [](Plan&) {});
  add({2, 2, 1, 1}, 2, [&](Plan& p) {
    flash(p);
    p.sequence_parallel = true;
    p.recompute = Recompute::kFull;
  });
  add({1, 2, 2, 1}, 2, [](Plan& p) { p.zero = 2; });
  add({1, 1, 4, 1}, 1, [](Plan& p) { p.zero = 3; });
  add({2, 1, 2, 1}, 2, [](Plan& p) { p.zero = 1; });
  add({1, 1, 1, 2}, 4, flash);
  if (routed) {
    add({1, 1, 2, 1, 2}, 2, [](Plan& p) { p.zero = 1; });
    add({1, 1, 4, 1, 4}, 2, [](Plan&) {});
    add({2, 1, 2, 1, 2}, 2, [](Plan& p) { p.zero = 3; });
  }
  return list;
}

}  // namespace tpsim::test
