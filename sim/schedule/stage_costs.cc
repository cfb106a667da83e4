#include "sim/schedule/stage_costs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/layers/step_end.h"

namespace tpsim {
namespace {

// `n` equal blocks. Phase holds time and memory, or one of them.
template <class Phase>
struct Blocks {
  Phase forward, backward, accumulate;

  template <class Layer>
  Blocks(const Layer& block, std::int64_t n)
      : forward(repeat(block.forward, n)),
        backward(repeat(block.backward, n)),
        accumulate(repeat(block.accumulate, n)) {}

  // Appends later blocks in model order: forward runs through these blocks first, backward last.
  void followed_by(const Blocks& later) {
    forward = then(forward, later.forward);
    backward = then(later.backward, backward);
    accumulate = then(accumulate, later.accumulate);
  }
};

// Consecutive equal blocks.
struct BlockRun {
  std::int64_t kind = 0;
  bool recomputes = false;
  std::int64_t count = 0;
};

// The runs of a chunk in model order; at least one, which may be empty.
std::vector<BlockRun> runs_of(const ModelSpec& model, const Plan& plan, const ChunkKind& chunk) {
  const std::int64_t recomputed =
      plan.recompute == Recompute::kBlocks ? recomputed_blocks(plan, chunk.blocks) : 0;
  std::vector<BlockRun> runs;
  if (model.block_kinds.empty()) {  // at most two runs
    if (recomputed > 0) runs.push_back({0, true, recomputed});
    if (recomputed < chunk.blocks || runs.empty())
      runs.push_back({0, false, chunk.blocks - recomputed});
    return runs;
  }
  for (std::int64_t i = 0; i < chunk.blocks; ++i) {
    const std::int64_t kind = block_kind(model, chunk.first_layer + i);
    const bool recomputes = i < recomputed;
    const bool goes_on =
        !runs.empty() && runs.back().kind == kind && runs.back().recomputes == recomputes;
    if (!goes_on) runs.push_back({kind, recomputes, 0});
    ++runs.back().count;
  }
  if (runs.empty()) runs.push_back({});
  return runs;
}

template <class Phase, class Layers>
Blocks<Phase> blocks_of(const ModelSpec& model, const Plan& plan, const ChunkKind& chunk,
                        const Layers& layers_of) {
  const auto of_run = [&](const BlockRun& run) {
    const bool varies = plan.recompute == Recompute::kBlocks;
    return Blocks<Phase>(
        layers_of(LayerKind::kBlock, varies ? with_whole_recompute(plan, run.recomputes) : plan,
                  run.kind),
        run.count);
  };
  const std::vector<BlockRun> runs = runs_of(model, plan, chunk);
  Blocks<Phase> blocks = of_run(runs.front());
  for (std::size_t i = 1; i < runs.size(); ++i) blocks.followed_by(of_run(runs[i]));
  return blocks;
}

// Composes forward and backward of a chunk from its layers.
template <class Phase, class Layers>
std::pair<Phase, Phase> composed(const ModelSpec& model, const Plan& plan, const ChunkKind& kind,
                                 const Layers& layers_of) {
  auto [forward, backward, accumulate] = blocks_of<Phase>(model, plan, kind, layers_of);
  if (kind.is_first) {
    const auto& embedding = layers_of(LayerKind::kEmbedding, plan, 0);
    forward = then(embedding.forward, forward);
    backward = then(backward, embedding.backward);
    accumulate = then(embedding.accumulate, accumulate);  // in the order of the parameter store
  }
  if (kind.is_last) {
    const auto& head = layers_of(LayerKind::kHead, plan, 0);
    // Each MTP layer is another block and another pass through the head.
    const std::int64_t more = model.ends.prediction_layers;
    if (more > 0) {
      const std::vector<std::int64_t> kinds = prediction_kinds(model);
      Blocks<Phase> predictions(layers_of(LayerKind::kBlock, plan, kinds.front()), more);
      for (std::size_t i = 1; i < kinds.size(); ++i) {
        predictions.followed_by(Blocks<Phase>(layers_of(LayerKind::kBlock, plan, kinds[i]), more));
      }
      predictions.followed_by(Blocks<Phase>(head, more));
      forward = then(forward, predictions.forward);
      backward = then(predictions.backward, backward);
      accumulate = then(accumulate, predictions.accumulate);
    }
    forward = then(forward, head.forward);
    backward = then(head.backward, backward);
    accumulate = then(accumulate, head.accumulate);
  }
  return {forward, then(backward, accumulate)};
}

// Whole gradients of a layer that are still in reduction during the backward of the next layer.
class GradientsInReduction {
 public:
  GradientsInReduction(LayerPricer& pricer, const Plan& plan) : pricer_(pricer), plan_(plan) {}

  static bool stay(const StackSpec& stack, const Plan& plan) {
    return stack.memory.layer_in_reduction && stack.training.overlap_gradient_reduction &&
           plan.zero >= 2 && has_replicas(plan) && !holds_whole_gradients(plan, stack.training);
  }

  // Memory of a chunk's backward; at its end no gradients are in reduction.
  MemoryChange backward(const ChunkKind& chunk) {
    MemoryChange all;
    if (chunk.is_last) {
      const LayerMemory& head = pricer_.layer_memory(LayerKind::kHead, plan_, 0);
      all = head.backward;
      behind_ = head.gradients;
    }
    const std::vector<BlockRun> runs = runs_of(pricer_.scenario().model, plan_, chunk);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) add(all, *run);
    if (!chunk.is_first) return all;
    return then(all, pricer_.layer_memory(LayerKind::kEmbedding, plan_, 0).backward);
  }

 private:
  void add(MemoryChange& all, const BlockRun& run) {
    if (run.count == 0) return;
    const bool varies = plan_.recompute == Recompute::kBlocks;
    const LayerMemory& block = pricer_.layer_memory(
        LayerKind::kBlock, varies ? with_whole_recompute(plan_, run.recomputes) : plan_, run.kind);
    all = followed(all, block.backward);
    behind_ = block.gradients;
    all = followed(all, repeat(block.backward, run.count - 1));
  }
  MemoryChange followed(const MemoryChange& first, const MemoryChange& second) const {
    return then(then(first, of_gradients(behind_)), then(second, of_gradients(-behind_)));
  }
  static MemoryChange of_gradients(double bytes) {
    using memory_index::kGradients;
    MemoryChange change;
    change.left[kGradients] = bytes;
    change.highest[kGradients] = change.each[kGradients] = std::max(0.0, bytes);
    return change;
  }
  LayerPricer& pricer_;
  const Plan& plan_;
  double behind_ = 0;  // bytes
};

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
      pricer.scenario().model, plan, kind,
      [&](LayerKind layer, const Plan& of, std::int64_t block) -> const LayerCost& {
        return pricer.layer(layer, of, block);
      });
  const PhaseCost scales = pricer.scale_exchange(plan, kind.blocks);
  ChunkCost cost{kind, then(phases.first, scales), then(phases.second, scales)};
  if (GradientsInReduction::stay(pricer.scenario().stack, plan)) {
    cost.backward.memory = GradientsInReduction(pricer, plan).backward(kind);
  }
  return cost;
}

ChunkTimes chunk_times(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  struct LayerTimes {
    HostDeviceTime forward, backward, accumulate;
  };
  const auto passes = composed<HostDeviceTime>(
      pricer.scenario().model, plan, kind,
      [&](LayerKind layer, const Plan& of, std::int64_t block) {
        const LayerCost& cost = pricer.layer(layer, of, block);
        return LayerTimes{cost.forward.time, cost.backward.time, cost.accumulate.time};
      });
  const HostDeviceTime scales = pricer.scale_exchange(plan, kind.blocks).time;
  return {then(passes.first, scales), then(passes.second, scales)};
}

ChunkMemory chunk_memory(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  const auto phases = composed<MemoryChange>(
      pricer.scenario().model, plan, kind,
      [&](LayerKind layer, const Plan& of, std::int64_t block) -> const LayerMemory& {
        return pricer.layer_memory(layer, of, block);
      });
  if (GradientsInReduction::stay(pricer.scenario().stack, plan)) {
    return {phases.first, GradientsInReduction(pricer, plan).backward(kind)};
  }
  return {phases.first, phases.second};
}

FixedCosts fixed_costs(LayerPricer& pricer, const Plan& plan) {
  FixedCosts costs{{},
                   &pricer.fixed(LayerKind::kEmbedding, plan),
                   &pricer.fixed(LayerKind::kWordEmbeddings, plan),
                   &pricer.fixed(LayerKind::kHead, plan),
                   overwrites_gradients(pricer.scenario().stack.training)};
  for (std::int64_t kind = 0; kind < block_kind_count(pricer.scenario().model); ++kind) {
    costs.blocks.push_back(&pricer.fixed(LayerKind::kBlock, plan, kind));
  }
  return costs;
}

Bytes gradient_stand_ins(const FixedCosts& fixed) {
  Bytes most;
  for (const FixedCost* block : fixed.blocks) most = std::max(most, block->stand_ins);
  return most;
}

FixedCost stage_fixed(const FixedCosts& fixed, const ModelSpec& model, const StageKind& stage) {
  FixedCost sum;
  for (std::size_t kind = 0; kind < fixed.blocks.size(); ++kind) {
    add(sum, *fixed.blocks[kind], stage.of_kind[kind]);
  }
  if (stage.is_first) {
    add(sum, *fixed.embedding, 1);
    add(sum, *fixed.table, 1);
  }
  if (stage.is_last) {
    add(sum, *fixed.head, 1);
    for (const std::int64_t kind : prediction_kinds(model)) {
      add(sum, *fixed.blocks[static_cast<std::size_t>(kind)], model.ends.prediction_layers);
    }
    // Tied word embeddings on one stage share one table; on two stages each has a copy.
    const bool shared = model.tied_embedding && stage.is_first;
    if (!shared) add(sum, *fixed.table, 1);
    if (fixed.head_overwrites) {
      sum.end[StepEndPart::kZeroGrad] -= fixed.table->end[StepEndPart::kZeroGrad];
    }
  }
  return sum;
}

PlanCosts plan_costs(LayerPricer& pricer, const Plan& plan) {
  PlanCosts costs;
  costs.cut = stage_cut(plan.stage_layers, plan.degrees.pp, pricer.scenario().model);
  const StageCut& cut = costs.cut;
  // Without a pipeline there are no transfers.
  if (plan.degrees.pp > 1) costs.transfer = pricer.transfer(plan);
  for (const ChunkKind& kind : cut.chunks) costs.kinds.push_back(chunk_cost(pricer, plan, kind));
  const FixedCosts fixed = fixed_costs(pricer, plan);
  costs.gradient_stand_ins = gradient_stand_ins(fixed);
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
      const PassTimes pass =
          pass_times(stack, chunk.forward.time, chunk.backward.time, std::ssize(stage.chunks));
      t.forward.push_back(to_picoseconds(pass.forward + gather_in));
      t.backward.push_back(to_picoseconds(pass.backward + gather_back));
    }
  }
  times.transfer = to_picoseconds(costs.transfer.wire);
  times.sender_waits = !stack.parts.overlap_p2p;
  times.receiver_waits = times.sender_waits && stack.parts.p2p_calls == P2pCalls::kSerial;
  return times;
}

}  // namespace tpsim
