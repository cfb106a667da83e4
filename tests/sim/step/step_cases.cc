#include "tests/sim/step/step_cases.h"

#include <catch2/catch.hpp>

#include "core/plan/rank_layout.h"

namespace tpsim::test {

std::vector<StepCase> step_cases() {
  std::vector<StepCase> list;
  for (const ModelSpec& model : {small_bloom(), small_llama(), small_gpt()}) {
    const auto add = [&](const char* name, ParallelDegrees degrees, auto change) {
      StepCase c{name, model, plan_of(model, degrees, 4), true};
      change(c);
      REQUIRE(validate(c.plan, model).ok());
      list.push_back(c);
    };
    add("one rank", {1, 1, 1, 1}, [](StepCase&) {});
    add("tensor", {2, 1, 1, 1}, [](StepCase& c) { c.plan.recompute = Recompute::kNone; });
    add("sequence", {2, 1, 2, 1}, [](StepCase& c) {
      c.plan.sequence_parallel = true;
      c.plan.recompute = Recompute::kSelective;
    });
    add("pipeline", {1, 4, 1, 1}, [](StepCase&) {});
    add("gpipe", {1, 2, 2, 1}, [](StepCase& c) { c.plan.schedule = ScheduleKind::kGpipe; });
    add("zb-h1", {1, 4, 1, 1}, [](StepCase& c) { c.plan.schedule = ScheduleKind::kZbH1; });
    add("zb-h1, uneven stages, zero 1", {2, 2, 2, 1}, [](StepCase& c) {
      c.plan.schedule = ScheduleKind::kZbH1;
      c.plan.recompute = Recompute::kNone;
      c.plan.zero = 1;
      c.plan.stage_layers = {3, 5};
    });
    add("interleaved", {2, 2, 1, 1}, [](StepCase& c) {
      c.plan.schedule = ScheduleKind::kInterleaved;
      c.plan.virtual_stages = 2;
      c.plan.stage_layers = even_stage_layers(c.model.layers, 4, false);
    });
    add("some blocks recomputed", {1, 2, 1, 1}, [](StepCase& c) {
      c.plan.recompute = Recompute::kBlocks;
      c.plan.recompute_blocks = 3;
    });
    add("some blocks of uneven stages recomputed, zero 3", {2, 2, 2, 1}, [](StepCase& c) {
      c.plan.recompute = Recompute::kBlocks;
      c.plan.recompute_blocks = 2;
      c.plan.stage_layers = {1, 7};
      c.plan.zero = 3;
      c.plan.attention = AttentionKind::kFlash;
    });
    add("some blocks recomputed, interleaved", {2, 2, 1, 1}, [](StepCase& c) {
      c.plan.recompute = Recompute::kBlocks;
      c.plan.recompute_blocks = 1;
      c.plan.schedule = ScheduleKind::kInterleaved;
      c.plan.virtual_stages = 2;
      c.plan.stage_layers = {1, 3, 3, 1};
    });
    add("zero 1", {1, 2, 2, 1}, [](StepCase& c) { c.plan.zero = 1; });
    add("offloaded optimizer", {2, 2, 2, 1}, [](StepCase& c) {
      c.plan.zero = 1;
      c.plan.offload = Offload::kOptimizer;
    });
    for (const std::int64_t dp : {1, 2}) {
      add("weights on the host", {2, 1, dp, 1}, [](StepCase& c) {
        c.plan.zero = 3;
        c.plan.offload = Offload::kParameters;
      });
    }
    add("zero 2", {2, 1, 2, 1}, [](StepCase& c) { c.plan.zero = 2; });
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      add("last layers trained", {2, 1, 2, 1}, [recompute](StepCase& c) {
        c.finetune = {.selects = true, .layers = 3};
        c.plan.recompute = recompute;
        c.plan.zero = recompute == Recompute::kFull ? 3 : 1;
      });
    }
    add("first layers and head trained", {1, 1, 2, 1}, [](StepCase& c) {
      c.finetune = {
          .selects = true, .trained = kMlpWeights | part_bit(WeightPart::kHead), .layers = -2};
      c.plan.zero = 2;
    });
    add("embeddings frozen", {2, 1, 2, 1}, [](StepCase& c) {
      c.finetune = {.selects = true, .trained = kAllParts & ~part_bit(WeightPart::kEmbedding)};
    });
    add("some matrices trained", {2, 1, 1, 1}, [](StepCase& c) {
      c.finetune = {.selects = true,
                    .trained = part_bit(WeightPart::kKey) | part_bit(WeightPart::kDown) |
                               part_bit(WeightPart::kNorms)};
      c.plan.recompute = Recompute::kNone;
    });
    add("adapters of some layers", {2, 1, 1, 1}, [](StepCase& c) {
      c.finetune = {.adapts = true, .layers = 2};
      c.plan.recompute = Recompute::kNone;
    });
    add("zero 3", {1, 1, 4, 1}, [](StepCase& c) {
      c.plan.zero = 3;
      c.plan.attention = AttentionKind::kFlash;
    });
    add("context", {1, 1, 1, 2}, [](StepCase& c) { c.plan.attention = AttentionKind::kFlash; });
    add("context, unfused", {1, 1, 1, 4},
        [](StepCase& c) { c.plan.recompute = Recompute::kSelective; });
    add("context, tensor and pipeline", {2, 2, 1, 2}, [](StepCase& c) {
      c.plan.sequence_parallel = true;
      c.plan.recompute = Recompute::kNone;
      c.plan.attention = AttentionKind::kFlash;
    });
    add("context and zero", {1, 1, 2, 2}, [](StepCase& c) {
      c.plan.zero = 3;
      c.plan.recompute = Recompute::kNone;
    });
    add("context, zero 1 and interleaved", {1, 2, 2, 2}, [](StepCase& c) {
      c.plan.zero = 1;
      c.plan.schedule = ScheduleKind::kInterleaved;
      c.plan.virtual_stages = 2;
      c.plan.stage_layers = even_stage_layers(c.model.layers, 4, false);
    });
    add("separate gradients", {2, 2, 2, 1}, [](StepCase& c) { c.fused_accumulation = false; });
  }
  const auto add_to = [&](const ModelSpec& model, const char* name, ParallelDegrees degrees,
                          auto change) {
    StepCase c{name, model, plan_of(model, degrees, 4), true};
    c.plan.sequence_parallel = degrees.tp > 1;
    change(c);
    REQUIRE(validate(c.plan, model).ok());
    list.push_back(c);
  };
  for (const ModelSpec& model : {small_hybrid(), small_delta_net()}) {
    add_to(model, "recurrences", {1, 1, 1, 1},
           [](StepCase& c) { c.plan.recompute = Recompute::kNone; });
    add_to(model, "recurrences, tensor and pipeline", {2, 2, 2, 1}, [](StepCase& c) {
      c.plan.stage_layers = {5, 3};
    });
    add_to(model, "recurrences made again", {2, 1, 2, 1}, [](StepCase& c) { c.plan.zero = 3; });
  }
  add_to(small_planned(), "planned ops", {1, 1, 1, 1},
         [](StepCase& c) { c.plan.recompute = Recompute::kNone; });
  add_to(small_planned(), "planned ops, tensor and pipeline", {2, 2, 2, 1}, [](StepCase& c) {
    c.plan.stage_layers = {5, 3};
  });
  add_to(small_planned(), "planned ops made again", {2, 1, 2, 1},
         [](StepCase& c) { c.plan.zero = 3; });
  const auto add_experts = [&](const char* name, ParallelDegrees degrees, auto change) {
    add_to(small_mixture(), name, degrees, change);
  };
  add_experts("experts", {1, 1, 1, 1, 1}, [](StepCase&) {});
  add_experts("expert groups", {1, 1, 4, 1, 2}, [](StepCase& c) {
    c.plan.recompute = Recompute::kNone;
    c.plan.zero = 0;
  });
  add_experts("experts of one rank each", {1, 2, 4, 1, 4}, [](StepCase& c) { c.plan.zero = 1; });
  add_experts("expert and tensor groups", {2, 2, 2, 1, 2}, [](StepCase& c) { c.plan.zero = 1; });
  add_experts("experts, zero 2", {1, 1, 4, 1, 2}, [](StepCase& c) { c.plan.zero = 2; });
  add_experts("experts, zero 3 and context", {1, 1, 4, 2, 2}, [](StepCase& c) { c.plan.zero = 3; });
  add_experts("experts trained", {1, 1, 2, 1, 2}, [](StepCase& c) {
    c.finetune = {.selects = true, .trained = kMlpWeights, .layers = 2};
    c.plan.recompute = Recompute::kNone;
  });
  add_experts("router trained", {1, 1, 2, 1, 2}, [](StepCase& c) {
    c.finetune = {.selects = true, .trained = part_bit(WeightPart::kRouter)};
  });
  add_experts("experts on the host", {1, 1, 4, 1, 2}, [](StepCase& c) {
    c.plan.zero = 3;
    c.plan.offload = Offload::kParameters;
  });
  add_experts("experts, separate gradients", {1, 2, 2, 1, 2}, [](StepCase& c) {
    c.fused_accumulation = false;
    c.plan.rank_order = RankOrder::kTpPpDp;
  });
  return list;
}

Scenario scenario_of(const StepCase& c) {
  Scenario scenario = small_scenario(c.model);
  scenario.stack.training.gradient_accumulation =
      c.fused_accumulation ? GradientAccumulation::kFused : GradientAccumulation::kSeparate;
  scenario.stack.training.finetune = c.finetune;
  scenario.stack.memory.allocation_granularity = Bytes(1);
  for (const FieldWord& word : row_of(Setting::kSchedule).words) {
    scenario.stack.choices.only[Setting::kSchedule].push_back(word.value);
  }
  return scenario;
}

std::int64_t traced_rank(const Plan& plan, std::int64_t stage) {
  return global_rank(plan, {.pp = stage, .cp = plan.degrees.cp - 1});
}

}  // namespace tpsim::test
