// For random plans, the program that is priced is the one that a rank executes: the same ops and
// collectives, and the same changes of memory, in the same order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>

#include "core/plan/rank_layout.h"
#include "core/scenario/measured_stack.h"
#include "lowering/trace/rank_trace.h"
#include "sim/memory/memory_walk.h"
#include "sim/step/rank_programs.h"
#include "sim/step/simulate.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim {
namespace {

constexpr int kPlans = 200;

class RandomPlans {
 public:
  test::StepCase next() {
    for (;;) {
      test::StepCase drawn = draw();
      // A stage with both ends of a tied embedding is priced with one gradient buffer for each end.
      const bool shares = drawn.model.tied_embedding && drawn.plan.degrees.pp == 1;
      if (shares) drawn.fused_accumulation = true;
      if (validate(drawn.plan, drawn.model).ok()) return drawn;
    }
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

  test::StepCase draw() {
    test::StepCase drawn{"random", model(), {}, one_of({true, false})};
    const std::int64_t ep = has_experts(drawn.model) ? one_of({1, 2, 4}) : 1;
    drawn.plan = test::plan_of(drawn.model,
                               {.tp = one_of({1, 2, 4}),
                                .pp = one_of({1, 2, 4}),
                                .dp = one_of({1, 2, 4}),
                                .cp = one_of({1, 1, 2}),
                                .ep = ep},
                               one_of({1, 3, 4, 8}));
    Plan& plan = drawn.plan;
    plan.zero = one_of({0, 1, 2, 3});
    plan.sequence_parallel = plan.degrees.tp > 1 && one_of({true, false});
    plan.attention = one_of({AttentionKind::kFlash, AttentionKind::kUnfused});
    plan.recompute =
        one_of({Recompute::kNone, Recompute::kFull, Recompute::kSelective, Recompute::kBlocks});
    if (plan.recompute == Recompute::kBlocks) plan.recompute_blocks = 1;
    plan.schedule = one_of({ScheduleKind::kOneFOneB, ScheduleKind::kGpipe,
                            ScheduleKind::kInterleaved, ScheduleKind::kZbH1});
    if (plan.schedule == ScheduleKind::kZbH1) drawn.fused_accumulation = true;
    if (plan.schedule == ScheduleKind::kInterleaved) {
      plan.virtual_stages = 2;
      plan.stage_layers = even_stage_layers(drawn.model.layers, 2 * plan.degrees.pp, false);
    }
    plan.rank_order = one_of({RankOrder::kTpDpPp, RankOrder::kTpPpDp});
    return drawn;
  }

  ModelSpec model() {
    switch (random_() % 6) {
      case 0: return test::small_bloom();
      case 1: return test::small_gpt();
      case 2: return test::small_mixture();
      case 3: return test::small_hybrid();
      case 4: return test::small_delta_net();
      default: return test::small_llama();
    }
  }

  std::mt19937 random_{1};
};

Scenario reference_scenario(const test::StepCase& drawn) {
  Scenario scenario = test::scenario_of(drawn);
  scenario.stack.name = own_stack(scenario.profile);
  scenario.cluster.nodes = 1024;
  return scenario;
}

std::string text_of(const CollectiveRecord& record) {
  return std::string(name_of(record.kind)) + " " + std::string(name_of(record.group)) + " " +
         std::to_string(record.ranks) + " " + std::to_string(record.bytes);
}

// Whether every rank of a step runs the work for each micro-batch.
bool is_per_micro_batch(ModelPart part) {
  switch (part) {
    case ModelPart::kZeroGrad:
    case ModelPart::kSequenceParallelGradients:
    case ModelPart::kEmbeddingGradients:
    case ModelPart::kDataParallelReduction:
    case ModelPart::kGradNorm:
    case ModelPart::kOptimizer:
    case ModelPart::kParameterGather:
    case ModelPart::kReporting:
    case ModelPart::kInitialization:
    case ModelPart::kCoordination:
    case ModelPart::kPipeline:
    case ModelPart::kPipelineGradients: return false;
    default: return true;
  }
}

// Tokens and labels of a micro-batch arrive together in a step. In a layer's trace, labels arrive
// in the head.
bool is_of_tokens(std::string_view label) {
  return label == "data.tokens" || label == "data.labels";
}

using Steps = std::vector<std::string>;

// The ops and collectives of all micro-batches, in order.
Steps executed(const RankTrace& trace) {
  Steps steps;
  for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      if (is_per_micro_batch(op.label.part)) steps.push_back(to_string(op.key));
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const CollectiveRecord& record = trace.program.collectives[event.index];
      if (is_per_micro_batch(record.label.part)) steps.push_back(text_of(record));
    }
  }
  return steps;
}

// Adds a phase of a layer, either its broadcasts of tokens or everything else.
void add_phase(const PartProgram& part, Phase phase, bool tokens, Steps& steps) {
  for (const PhaseProgram& program : part.phases) {
    if (program.phase != phase) continue;
    for (const IssuedEvent& event : program.events) {
      if (const auto* op = std::get_if<LoweredOp>(&event.what)) {
        if (!tokens && is_per_micro_batch(op->label.part)) steps.push_back(to_string(op->key));
      } else if (const auto* record = std::get_if<LoweredCollective>(&event.what)) {
        const bool is_wanted = tokens == is_of_tokens(record->label.text);
        if (is_wanted && is_per_micro_batch(record->label.part)) steps.push_back(text_of(*record));
      }
    }
  }
}

// Layers of the chunk, in order.
std::vector<PartProgram> layers_of(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  std::vector<PartProgram> layers;
  for (const ChunkLayer& layer : chunk_layers(pricer.scenario(), plan, kind)) {
    layers.insert(layers.end(), static_cast<std::size_t>(layer.count),
                  micro_batch_program(pricer, plan_of(layer, plan), layer.kind, layer.block));
  }
  return layers;
}

void add_task(const std::vector<PartProgram>& layers, SpanKind kind, Steps& steps) {
  const auto last_first = [&](std::initializer_list<Phase> phases) {
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      for (const Phase phase : phases) add_phase(*layer, phase, false, steps);
    }
  };
  if (kind == SpanKind::kForward) {
    for (const bool tokens : {true, false}) {
      for (const PartProgram& layer : layers) add_phase(layer, Phase::kForward, tokens, steps);
    }
  } else if (kind == SpanKind::kBackward) {
    last_first({Phase::kRecompute, Phase::kBackward});
    for (const PartProgram& layer : layers) add_phase(layer, Phase::kAccumulate, false, steps);
  } else if (kind == SpanKind::kWeightGradient) {
    last_first({Phase::kWeightGradient});
  }
}

Steps priced(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs, std::int64_t stage) {
  const auto timeline = simulate_timeline(pricer.scenario(), plan);
  REQUIRE(timeline.ok());
  std::vector<std::vector<PartProgram>> chunks;
  for (const std::int32_t chunk : costs.stages[static_cast<std::size_t>(stage)].chunks) {
    chunks.push_back(layers_of(pricer, plan, costs.kinds[static_cast<std::size_t>(chunk)]));
  }
  Steps steps;
  for (const TimelineSpan& span : timeline->spans) {
    if (span.stage != stage) continue;
    const auto chunk = static_cast<std::size_t>(span.chunk / plan.degrees.pp);
    if (chunk < chunks.size()) add_task(chunks[chunk], span.kind, steps);
  }
  return steps;
}

struct Change {
  std::int64_t bytes = 0;  // negative: freed
  std::string_view label;
  MemoryCategory category{};
};

// Changes of device memory during a step, in bytes, in order.
std::vector<Change> executed_memory(const RankTrace& trace) {
  std::vector<Change> changes;
  for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
    const ProgramEvent& event = trace.program.events[i];
    const bool allocates = event.kind == ProgramEvent::Kind::kAllocate;
    if (!allocates && event.kind != ProgramEvent::Kind::kFree) continue;
    const AllocationRecord& made = trace.program.allocations[event.index];
    if (made.category == MemoryCategory::kHost) continue;
    if (is_of_tokens(made.label)) continue;
    changes.push_back({allocates ? made.bytes : -made.bytes, made.label, made.category});
  }
  return changes;
}

std::vector<Change> priced_memory(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                                  std::int64_t stage) {
  const auto timeline = simulate_timeline(pricer.scenario(), plan);
  REQUIRE(timeline.ok());
  std::vector<Change> changes;
  walk_memory(pricer, plan, costs, *timeline, stage, [&](const MemoryEvent& event) {
    if (event.task == kStepStart || is_of_tokens(event.group.label)) return;
    if (timeline->spans[event.task].kind == SpanKind::kOptimizer) return;
    changes.push_back({std::llround(event.bytes), event.group.label, event.group.category});
  });
  return changes;
}

// Return a text that says where the priced and the executed program differ; empty if nowhere.
std::string differences(const Steps& priced, const Steps& executed) {
  const auto [a, b] = std::mismatch(priced.begin(), priced.end(), executed.begin(), executed.end());
  if (a == priced.end() && b == executed.end()) return "";
  return "step " + std::to_string(a - priced.begin()) + " of " + std::to_string(executed.size()) +
         ": priced " + (a == priced.end() ? "nothing" : *a) + ", executed " +
         (b == executed.end() ? "nothing" : *b);
}
// The priced memory ends before the update of the weights, which allocates no activations.
std::string differences(const std::vector<Change>& priced, const std::vector<Change>& executed) {
  const auto last = std::find_if(executed.rbegin(), executed.rend(), [](const Change& change) {
    return change.category == MemoryCategory::kActivations;
  });
  const std::size_t count =
      std::max(priced.size(), static_cast<std::size_t>(executed.rend() - last));
  for (std::size_t i = 0; i < count; ++i) {
    const Change a = i < priced.size() ? priced[i] : Change(),
                 b = i < executed.size() ? executed[i] : Change();
    if (a.bytes == b.bytes) continue;
    return "change " + std::to_string(i) + ": priced " + std::to_string(a.bytes) + " of " +
           std::string(a.label) + ", executed " + std::to_string(b.bytes) + " of " +
           std::string(b.label);
  }
  return "";
}

}  // namespace

TEST_CASE("the priced program of random plans is the executed one") {
  RandomPlans plans;
  for (int i = 0; i < kPlans; ++i) {
    const test::StepCase drawn = plans.next();
    const Scenario scenario = reference_scenario(drawn);
    LayerPricer pricer(scenario);
    const PlanCosts costs = plan_costs(pricer, drawn.plan);
    for (std::int64_t stage = 0; stage < drawn.plan.degrees.pp; ++stage) {
      INFO(i << ": " << drawn.model.name << ", " << short_name(drawn.plan) << ", stage " << stage);
      const RankTrace trace = trace_rank(drawn.model, drawn.plan, scenario.stack.training,
                                         test::traced_rank(drawn.plan, stage));
      CHECK(differences(priced(pricer, drawn.plan, costs, stage), executed(trace)) == "");
      CHECK(differences(priced_memory(pricer, drawn.plan, costs, stage), executed_memory(trace)) ==
            "");
    }
  }
}

}  // namespace tpsim
