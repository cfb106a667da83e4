// A plan's stages, put together from pieces.
#pragma once

#include <vector>

#include "sim/piece_costs.h"
#include "sim/pipeline.h"

namespace tpsim {

struct ChunkCost {
  PhaseCost forward, backward;  // of one micro-batch, without transfers
  bool is_first = false;        // of the model: starts from tokens
  bool is_last = false;         // ends in the loss
};

struct StageCost {
  std::vector<ChunkCost> chunks;
  BytesByCategory fixed{};
  StepEndCost end;
};

std::vector<StageCost> stage_costs(PieceCosts& pieces, const Plan& plan);

// Durations of the pipeline's tasks: compute, host and the gather after a transfer.
PipelineTimes pipeline_times(PieceCosts& pieces, const Plan& plan,
                             const std::vector<StageCost>& stages);

}  // namespace tpsim
