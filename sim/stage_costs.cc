#include "sim/stage_costs.h"

namespace tpsim {
namespace {

ChunkCost chunk_cost(PieceCosts& pieces, const Plan& plan, std::int64_t chunk) {
  ChunkCost cost;
  cost.is_first = chunk == 0;
  cost.is_last = chunk + 1 == chunk_count(plan);
  const std::int64_t blocks = plan.stage_layers[static_cast<std::size_t>(chunk)];
  const PieceCost& block = pieces.piece(PieceKind::kBlock, plan);
  cost.forward = PhaseCost::repeat(block.forward, blocks);
  cost.backward = PhaseCost::repeat(block.backward, blocks);
  if (cost.is_first) {
    const PieceCost& embedding = pieces.piece(PieceKind::kEmbedding, plan);
    cost.forward = PhaseCost::then(embedding.forward, cost.forward);
    cost.backward = PhaseCost::then(cost.backward, embedding.backward);
  }
  if (cost.is_last) {
    const PieceCost& head = pieces.piece(PieceKind::kHead, plan);
    cost.forward = PhaseCost::then(cost.forward, head.forward);
    cost.backward = PhaseCost::then(head.backward, cost.backward);
  }
  return cost;
}

void add_fixed(StageCost& stage, const PieceCost& piece, std::int64_t count) {
  for (std::size_t i = 0; i < stage.fixed.size(); ++i) {
    stage.fixed[i] += static_cast<double>(count) * piece.fixed[i];
  }
  stage.end += static_cast<double>(count) * piece.end;
}

}  // namespace

std::vector<StageCost> stage_costs(PieceCosts& pieces, const Plan& plan) {
  const std::int64_t pp = plan.degrees.pp;
  std::vector<StageCost> stages(static_cast<std::size_t>(pp));
  for (std::int64_t chunk = 0; chunk < chunk_count(plan); ++chunk) {
    StageCost& stage = stages[static_cast<std::size_t>(chunk % pp)];
    stage.chunks.push_back(chunk_cost(pieces, plan, chunk));
    add_fixed(stage, pieces.piece(PieceKind::kBlock, plan),
              plan.stage_layers[static_cast<std::size_t>(chunk)]);
  }
  const PieceCost& table = pieces.piece(PieceKind::kWordTable, plan);
  add_fixed(stages.front(), pieces.piece(PieceKind::kEmbedding, plan), 1);
  add_fixed(stages.front(), table, 1);
  add_fixed(stages.back(), pieces.piece(PieceKind::kHead, plan), 1);
  const bool shared = pieces.scenario().model.tied_embedding && pp == 1;
  if (!shared) add_fixed(stages.back(), table, 1);
  return stages;
}

PipelineTimes pipeline_times(PieceCosts& pieces, const Plan& plan,
                             const std::vector<StageCost>& stages) {
  PipelineTimes times;
  const bool transfers = plan.degrees.pp > 1;
  const TransferCost transfer = transfers ? pieces.transfer(plan) : TransferCost{};
  const StackSpec& stack = pieces.scenario().stack;
  const Seconds fixed = stack.host.per_micro_batch;
  for (const StageCost& stage : stages) {
    StageTimes& t = times.stages.emplace_back();
    for (const ChunkCost& chunk : stage.chunks) {
      const Seconds gather_in = chunk.is_first ? Seconds() : transfer.gather;
      const Seconds gather_back = chunk.is_last ? Seconds() : transfer.gather;
      t.forward.push_back(
          to_picoseconds(chunk.forward.queue.alone() + gather_in + fixed));
      t.backward.push_back(to_picoseconds(chunk.backward.queue.alone() + gather_back));
    }
  }
  times.transfer = to_picoseconds(transfer.wire);
  times.sender_waits = !stack.overlap_p2p;
  return times;
}

}  // namespace tpsim
