#include "sim/stage_costs.h"

#include <utility>

namespace tpsim {
namespace {

// A chunk's forward and backward from those of its pieces; `Layers` are of time or of memory.
template <class Phase, class Layers>
std::pair<Phase, Phase> composed(const ChunkKind& kind, const Layers& layers_of) {
  const auto& block = layers_of(PieceKind::kBlock);
  Phase forward = Phase::repeat(block.forward, kind.blocks);
  Phase backward = Phase::repeat(block.backward, kind.blocks);
  Phase accumulate = Phase::repeat(block.accumulate, kind.blocks);
  if (kind.is_first) {
    const auto& embedding = layers_of(PieceKind::kEmbedding);
    forward = Phase::then(embedding.forward, forward);
    backward = Phase::then(backward, embedding.backward);
    accumulate = Phase::then(embedding.accumulate, accumulate);  // in the store's order
  }
  if (kind.is_last) {
    const auto& head = layers_of(PieceKind::kHead);
    forward = Phase::then(forward, head.forward);
    backward = Phase::then(head.backward, backward);
    accumulate = Phase::then(accumulate, head.accumulate);
  }
  return {forward, Phase::then(backward, accumulate)};
}

void add(FixedCost& sum, const FixedCost& piece, std::int64_t count) {
  const auto n = static_cast<double>(count);
  for (std::size_t i = 0; i < sum.held.size(); ++i) {
    sum.held[i] += n * piece.held[i];
    sum.update[i] += n * piece.update[i];
  }
  sum.end += n * piece.end;
}

}  // namespace

ChunkCost chunk_cost(PieceCosts& pieces, const Plan& plan, const ChunkKind& kind) {
  const auto phases = composed<PhaseCost>(
      kind, [&](PieceKind piece) -> const LayerCost& { return pieces.layer(piece, plan); });
  return {kind, phases.first, phases.second};
}

ChunkMemory chunk_memory(PieceCosts& pieces, const Plan& plan, const ChunkKind& kind) {
  const auto phases = composed<MemoryChange>(kind, [&](PieceKind piece) -> const LayerMemory& {
    return pieces.layer_memory(piece, plan);
  });
  return {phases.first, phases.second};
}

FixedPieces fixed_pieces(PieceCosts& pieces, const Plan& plan) {
  return {&pieces.fixed(PieceKind::kBlock, plan), &pieces.fixed(PieceKind::kEmbedding, plan),
          &pieces.fixed(PieceKind::kWordTable, plan), &pieces.fixed(PieceKind::kHead, plan)};
}

Bytes block_weights(const FixedPieces& pieces) {
  return Bytes(pieces.block->held[static_cast<std::size_t>(MemoryCategory::kWeights)]);
}

FixedCost stage_fixed(const FixedPieces& pieces, const ModelSpec& model, const StageKind& stage) {
  FixedCost sum;
  add(sum, *pieces.block, stage.blocks);
  if (stage.is_first) {
    add(sum, *pieces.embedding, 1);
    add(sum, *pieces.table, 1);
  }
  if (stage.is_last) {
    add(sum, *pieces.head, 1);
    const bool shared = model.tied_embedding && stage.is_first;
    if (!shared) add(sum, *pieces.table, 1);
  }
  return sum;
}

PlanCosts plan_costs(PieceCosts& pieces, const Plan& plan) {
  const StageCut cut = stage_cut(plan.stage_layers, plan.degrees.pp);
  PlanCosts costs;
  if (plan.degrees.pp > 1) costs.transfer = pieces.transfer(plan);
  for (const ChunkKind& kind : cut.chunks) costs.kinds.push_back(chunk_cost(pieces, plan, kind));
  const FixedPieces fixed = fixed_pieces(pieces, plan);
  costs.block_weights = block_weights(fixed);
  for (const StageRun& run : cut.runs) {
    const StageKind& kind = cut.stages[static_cast<std::size_t>(run.kind)];
    const FixedCost cost = stage_fixed(fixed, pieces.scenario().model, kind);
    costs.stages.insert(costs.stages.end(), static_cast<std::size_t>(run.count),
                        {kind.chunks, cost.held, cost.update, cost.end});
  }
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
