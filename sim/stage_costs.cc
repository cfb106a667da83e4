#include "sim/stage_costs.h"

#include <utility>

namespace tpsim {
namespace {

// `n` equal blocks; Phase is of time or of memory.
template <class Phase>
struct Blocks {
  Phase forward, backward, accumulate;

  template <class Layer>
  Blocks(const Layer& block, std::int64_t n)
      : forward(Phase::repeat(block.forward, n)),
        backward(Phase::repeat(block.backward, n)),
        accumulate(Phase::repeat(block.accumulate, n)) {}

  // In the order of the model: forward runs through these first, backward last.
  void followed_by(const Blocks& later) {
    forward = Phase::then(forward, later.forward);
    backward = Phase::then(later.backward, backward);
    accumulate = Phase::then(accumulate, later.accumulate);
  }
};

template <class Phase, class Layers>
Blocks<Phase> blocks_of(const Plan& plan, const ChunkKind& kind, const Layers& layers_of) {
  if (plan.recompute != Recompute::kBlocks) {
    return Blocks<Phase>(layers_of(LayerKind::kBlock, plan), kind.blocks);
  }
  const std::int64_t recomputed = recomputed_blocks(plan, kind.blocks);
  Blocks<Phase> blocks(layers_of(LayerKind::kBlock, with_whole_recompute(plan, true)), recomputed);
  blocks.followed_by(Blocks<Phase>(layers_of(LayerKind::kBlock, with_whole_recompute(plan, false)),
                                   kind.blocks - recomputed));
  return blocks;
}

// A chunk's forward and backward from those of its layers; Phase is of time or of memory.
template <class Phase, class Layers>
std::pair<Phase, Phase> composed(const Plan& plan, const ChunkKind& kind, const Layers& layers_of) {
  auto [forward, backward, accumulate] = blocks_of<Phase>(plan, kind, layers_of);
  if (kind.is_first) {
    const auto& embedding = layers_of(LayerKind::kEmbedding, plan);
    forward = Phase::then(embedding.forward, forward);
    backward = Phase::then(backward, embedding.backward);
    accumulate = Phase::then(embedding.accumulate, accumulate);  // in the store's order
  }
  if (kind.is_last) {
    const auto& head = layers_of(LayerKind::kHead, plan);
    forward = Phase::then(forward, head.forward);
    backward = Phase::then(head.backward, backward);
    accumulate = Phase::then(accumulate, head.accumulate);
  }
  return {forward, Phase::then(backward, accumulate)};
}

void add(FixedCost& sum, const FixedCost& layer, std::int64_t count) {
  const auto n = static_cast<double>(count);
  for (std::size_t i = 0; i < sum.held.size(); ++i) {
    sum.held[i] += n * layer.held[i];
    sum.update[i] += n * layer.update[i];
  }
  sum.end += n * layer.end;
  sum.host += n * layer.host;
}

}  // namespace

ChunkCost chunk_cost(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  const auto phases = composed<PhaseCost>(
      plan, kind,
      [&](LayerKind layer, const Plan& of) -> const LayerCost& { return pricer.layer(layer, of); });
  return {kind, phases.first, phases.second};
}

ChunkMemory chunk_memory(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  const auto phases = composed<MemoryChange>(
      plan, kind, [&](LayerKind layer, const Plan& of) -> const LayerMemory& {
        return pricer.layer_memory(layer, of);
      });
  return {phases.first, phases.second};
}

FixedCosts fixed_costs(LayerPricer& pricer, const Plan& plan) {
  return {&pricer.fixed(LayerKind::kBlock, plan), &pricer.fixed(LayerKind::kEmbedding, plan),
          &pricer.fixed(LayerKind::kWordEmbeddings, plan), &pricer.fixed(LayerKind::kHead, plan)};
}

Bytes block_weights(const FixedCosts& fixed) {
  return Bytes(fixed.block->held[static_cast<std::size_t>(MemoryCategory::kWeights)]);
}

FixedCost stage_fixed(const FixedCosts& fixed, const ModelSpec& model, const StageKind& stage) {
  FixedCost sum;
  add(sum, *fixed.block, stage.blocks);
  if (stage.is_first) {
    add(sum, *fixed.embedding, 1);
    add(sum, *fixed.table, 1);
  }
  if (stage.is_last) {
    add(sum, *fixed.head, 1);
    // Tied word embeddings on one stage are one table; on two stages each holds a copy.
    const bool shared = model.tied_embedding && stage.is_first;
    if (!shared) add(sum, *fixed.table, 1);
  }
  return sum;
}

PlanCosts plan_costs(LayerPricer& pricer, const Plan& plan) {
  const StageCut cut = stage_cut(plan.stage_layers, plan.degrees.pp);
  PlanCosts costs;
  // Without a pipeline there is nobody to send to.
  if (plan.degrees.pp > 1) costs.transfer = pricer.transfer(plan);
  for (const ChunkKind& kind : cut.chunks) costs.kinds.push_back(chunk_cost(pricer, plan, kind));
  const FixedCosts fixed = fixed_costs(pricer, plan);
  costs.block_weights = block_weights(fixed);
  for (const StageRun& run : cut.runs) {
    const StageKind& kind = cut.stages[static_cast<std::size_t>(run.kind)];
    const FixedCost cost = stage_fixed(fixed, pricer.scenario().model, kind);
    costs.stages.insert(costs.stages.end(), static_cast<std::size_t>(run.count),
                        {kind.chunks, cost.held, cost.update, cost.end, cost.host});
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
          to_picoseconds(chunk.forward.time.alone() + gather_in + stack.host.per_micro_batch));
      t.backward.push_back(to_picoseconds(chunk.backward.time.alone() + gather_back));
    }
  }
  times.transfer = to_picoseconds(costs.transfer.wire);
  times.sender_waits = !stack.parts.overlap_p2p;
  return times;
}

}  // namespace tpsim
