// Composes the stages of a plan from the layers that a LayerPricer has priced.
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
// Times only.
struct ChunkTimes {
  HostDeviceTime forward, backward;
};
ChunkTimes chunk_times(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);
// Memory only; needs no prices.
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

// Costs per step of each kind of layer.
struct FixedCosts {
  std::vector<const FixedCost*> blocks;  // by kind of block
  const FixedCost *embedding = nullptr, *table = nullptr, *head = nullptr;
  bool head_overwrites =
      false;  // the head's GEMM overwrites the table's gradient, which then needs no clearing
};
FixedCosts fixed_costs(LayerPricer& pricer, const Plan& plan);
// One gradient per distinct shape of a block, for the kind of block with the largest sum.
Bytes gradient_stand_ins(const FixedCosts& fixed);
// Costs per step of all layers of a stage.
FixedCost stage_fixed(const FixedCosts& fixed, const ModelSpec& model, const StageKind& stage);

struct StageCost {
  std::vector<std::int32_t> chunks;  // indices into PlanCosts::kinds
  BytesByCategory fixed{};
  BytesByCategory update{};  // during the end of the step
  StepEndCost end;
  Bytes host;  // in host memory
};

// A plan has few kinds of chunks; each is stored once.
struct PlanCosts {
  StageCut cut;  // `kinds` are those of its chunks
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
