#include "sim/stage_costs.h"

#include <algorithm>

namespace tpsim {
namespace {

ChunkCost make_chunk(PieceCosts& pieces, const Plan& plan, const ChunkCost& kind) {
  ChunkCost cost = kind;
  const PieceCost& block = pieces.piece(PieceKind::kBlock, plan);
  cost.forward = PhaseCost::repeat(block.forward, kind.blocks);
  cost.backward = PhaseCost::repeat(block.backward, kind.blocks);
  PhaseCost accumulate = PhaseCost::repeat(block.accumulate, kind.blocks);
  if (cost.is_first) {
    const PieceCost& embedding = pieces.piece(PieceKind::kEmbedding, plan);
    cost.forward = PhaseCost::then(embedding.forward, cost.forward);
    cost.backward = PhaseCost::then(cost.backward, embedding.backward);
    accumulate = PhaseCost::then(embedding.accumulate, accumulate);  // in the store's order
  }
  if (cost.is_last) {
    const PieceCost& head = pieces.piece(PieceKind::kHead, plan);
    cost.forward = PhaseCost::then(cost.forward, head.forward);
    cost.backward = PhaseCost::then(head.backward, cost.backward);
    accumulate = PhaseCost::then(accumulate, head.accumulate);
  }
  cost.backward = PhaseCost::then(cost.backward, accumulate);
  return cost;
}

std::int32_t kind_of(PlanCosts& costs, PieceCosts& pieces, const Plan& plan, std::int64_t chunk) {
  ChunkCost kind;
  kind.blocks = plan.stage_layers[static_cast<std::size_t>(chunk)];
  kind.is_first = chunk == 0;
  kind.is_last = chunk + 1 == chunk_count(plan);
  const auto found = std::find_if(costs.kinds.begin(), costs.kinds.end(), [&](const auto& other) {
    return other.blocks == kind.blocks && other.is_first == kind.is_first &&
           other.is_last == kind.is_last;
  });
  if (found == costs.kinds.end()) {
    costs.kinds.push_back(make_chunk(pieces, plan, kind));
    return static_cast<std::int32_t>(costs.kinds.size()) - 1;
  }
  return static_cast<std::int32_t>(found - costs.kinds.begin());
}

void add_fixed(StageCost& stage, const PieceCost& piece, std::int64_t count) {
  for (std::size_t i = 0; i < stage.fixed.size(); ++i) {
    stage.fixed[i] += static_cast<double>(count) * piece.fixed[i];
    stage.update[i] += static_cast<double>(count) * piece.update[i];
  }
  stage.end += static_cast<double>(count) * piece.end;
}

}  // namespace

PlanCosts plan_costs(PieceCosts& pieces, const Plan& plan) {
  const std::int64_t pp = plan.degrees.pp;
  PlanCosts costs;
  costs.stages.resize(static_cast<std::size_t>(pp));
  if (pp > 1) costs.transfer = pieces.transfer(plan);
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(pp));
  for (std::int64_t chunk = 0; chunk < chunk_count(plan); ++chunk) {
    const auto stage = static_cast<std::size_t>(chunk % pp);
    costs.stages[stage].chunks.push_back(kind_of(costs, pieces, plan, chunk));
    blocks[stage] += plan.stage_layers[static_cast<std::size_t>(chunk)];
  }
  const PieceCost& block = pieces.piece(PieceKind::kBlock, plan);
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    add_fixed(costs.stages[s], block, blocks[s]);
  const PieceCost& table = pieces.piece(PieceKind::kWordTable, plan);
  add_fixed(costs.stages.front(), pieces.piece(PieceKind::kEmbedding, plan), 1);
  add_fixed(costs.stages.front(), table, 1);
  add_fixed(costs.stages.back(), pieces.piece(PieceKind::kHead, plan), 1);
  const bool shared = pieces.scenario().model.tied_embedding && pp == 1;
  if (!shared) add_fixed(costs.stages.back(), table, 1);
  return costs;
}

PipelineTimes pipeline_times(const StackSpec& stack, const PlanCosts& costs) {
  PipelineTimes times;
  for (const StageCost& stage : costs.stages) {
    StageTimes& t = times.stages.emplace_back();
    for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
      const ChunkCost& chunk = costs.chunk(stage, i);
      const Seconds gather_in = chunk.is_first ? Seconds() : costs.transfer.gather;
      const Seconds gather_back = chunk.is_last ? Seconds() : costs.transfer.gather;
      t.forward.push_back(
          to_picoseconds(chunk.forward.queue.alone() + gather_in + stack.host.per_micro_batch));
      t.backward.push_back(to_picoseconds(chunk.backward.queue.alone() + gather_back));
    }
  }
  times.transfer = to_picoseconds(costs.transfer.wire);
  times.sender_waits = !stack.overlap_p2p;
  return times;
}

}  // namespace tpsim
