// A plan's stages, put together from pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/piece_costs.h"
#include "sim/pipeline.h"

namespace tpsim {

struct ChunkCost {
  std::int64_t blocks = 0;
  PhaseCost forward, backward;  // of one micro-batch, without transfers
  bool is_first = false;        // of the model: starts from tokens
  bool is_last = false;         // ends in the loss
};

struct StageCost {
  std::vector<std::int32_t> chunks;  // indices into PlanCosts::kinds
  BytesByCategory fixed{};
  BytesByCategory update{};  // while the step ends
  StepEndCost end;
};

// Chunks come in few kinds: a plan's costs hold each kind once.
struct PlanCosts {
  std::vector<ChunkCost> kinds;
  std::vector<StageCost> stages;
  TransferCost transfer;  // zero without a pipeline

  const ChunkCost& chunk(const StageCost& stage, std::size_t i) const {
    return kinds[static_cast<std::size_t>(stage.chunks[i])];
  }
};
PlanCosts plan_costs(PieceCosts& pieces, const Plan& plan);

// Durations of the pipeline's tasks: compute, host and the gather after a transfer.
PipelineTimes pipeline_times(const StackSpec& stack, const PlanCosts& costs);

}  // namespace tpsim
