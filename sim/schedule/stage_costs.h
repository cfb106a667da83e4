// A plan's stages, put together from the layers that a LayerPricer has priced.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/schedule/pipeline.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// One micro-batch through a chunk, without transfers.
struct ChunkCost : ChunkKind {
  PhaseCost forward, backward;
};
ChunkCost chunk_cost(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);
// The same, its times alone.
struct ChunkTimes {
  HostDeviceTime forward, backward;
};
ChunkTimes chunk_times(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);
// The same, memory alone: needs no prices.
struct ChunkMemory {
  MemoryChange forward, backward;

  const MemoryChange& of(TaskKind kind) const {
    switch (kind) {
      case TaskKind::kForward: return forward;
      case TaskKind::kBackward: break;
    }
    return backward;
  }
};
ChunkMemory chunk_memory(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);

// What each kind of layer costs once per step.
struct FixedCosts {
  std::vector<const FixedCost*> blocks;  // by kind of block
  const FixedCost *embedding = nullptr, *table = nullptr, *head = nullptr;
  bool head_overwrites = false;  // its table's gradient, which then need not be cleared
};
FixedCosts fixed_costs(LayerPricer& pricer, const Plan& plan);
// One gradient for each distinct shape of a block, of the kind of block that has most.
Bytes gradient_stand_ins(const FixedCosts& fixed);
// What a stage costs once per step: all its layers.
FixedCost stage_fixed(const FixedCosts& fixed, const ModelSpec& model, const StageKind& stage);

struct StageCost {
  std::vector<std::int32_t> chunks;  // indices into PlanCosts::kinds
  BytesByCategory fixed{};
  BytesByCategory update{};  // while the step ends
  StepEndCost end;
  Bytes host;  // in the host's memory
};

// Chunks come in few kinds: a plan's costs hold each kind once.
struct PlanCosts {
  StageCut cut;  // whose chunks are `kinds`
  std::vector<ChunkCost> kinds;
  std::vector<StageCost> stages;
  TransferCost transfer;     // zero without a pipeline
  Bytes gradient_stand_ins;  // see gradient_stand_ins()

  const ChunkCost& chunk(const StageCost& stage, std::size_t i) const {
    return kinds[static_cast<std::size_t>(stage.chunks[i])];
  }
};
PlanCosts plan_costs(LayerPricer& pricer, const Plan& plan);

// Durations of the pipeline's tasks: compute, host and the gather after a transfer.
PipelineTimes pipeline_times(const StackSpec& stack, const PlanCosts& costs);

}  // namespace tpsim
