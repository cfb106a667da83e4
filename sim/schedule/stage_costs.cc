#include "sim/schedule/stage_costs.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "sim/layers/pass_times.h"
#include "sim/layers/stream_clocks.h"

namespace tpsim {
namespace {

// Appends a layer, or counts it with the last one if both are equal.
void append(std::vector<ChunkLayer>& layers, const ChunkLayer& layer) {
  if (layer.count == 0) return;
  if (!layers.empty() && is_same_layer(layers.back(), layer)) {
    layers.back().count += layer.count;
  } else {
    layers.push_back(layer);
  }
}

void append_blocks(std::vector<ChunkLayer>& layers, const Scenario& scenario, const Plan& plan,
                   const ChunkKind& chunk) {
  const ModelSpec& model = scenario.model;
  const std::int64_t recomputed =
      plan.recompute == Recompute::kBlocks ? recomputed_blocks(plan, chunk.blocks) : 0;
  const std::int64_t offloaded = offloaded_blocks(scenario.stack);
  if (model.block_kinds.empty() && offloaded == 0) {  // the loop below would give the same layers
    append(layers, {.recomputes = true, .count = recomputed});
    append(layers, {.count = chunk.blocks - recomputed});
    return;
  }
  for (std::int64_t i = 0; i < chunk.blocks; ++i) {
    append(layers, {.block = block_kind(model, chunk.first_layer + i),
                    .recomputes = i < recomputed,
                    .offloads = i < offloaded});
  }
}

// Offloads a block's saved activations. In forward, the activations of the previous block are still
// on the device during their copy to the host. In backward, the activations of this block and of
// the block that runs next are on the device.
void hand_to_host(ByTask<MemoryChange>& tasks) {
  using memory_index::kActivations;
  MemoryChange& forward = tasks[TaskKind::kForward];
  MemoryChange& backward = tasks[TaskKind::kBackward];
  const double saved = forward.left[kActivations];
  forward.left[kActivations] -= saved;
  backward.left[kActivations] += saved;
  for (BytesByCategory* most : {&forward.highest, &forward.each}) (*most)[kActivations] += saved;
  for (BytesByCategory* most : {&backward.highest, &backward.each}) {
    (*most)[kActivations] += 2 * saved;
  }
}

// Returns the bytes of a chunk's activations of one micro-batch that are offloaded to the host.
Bytes offloaded_bytes(LayerPricer& pricer, const Plan& plan, const ChunkKind& chunk) {
  if (offloaded_blocks(pricer.scenario().stack) == 0) return {};
  double bytes = 0;
  for (const ChunkLayer& layer : chunk_layers(pricer.scenario(), plan, chunk)) {
    if (!layer.offloads) continue;
    const LayerMemory& block = pricer.layer_memory(layer.kind, plan_of(layer, plan), layer.block);
    bytes += static_cast<double>(layer.count) *
             block[TaskKind::kForward].left[memory_index::kActivations];
  }
  return Bytes(bytes);
}

// Returns what a copy over the host link adds to `compute`, all compute of the chunk's forward or
// backward.
HostDeviceTime exposed_copy(const HostSpec& host, Bytes bytes, Seconds compute) {
  const Seconds copy = bytes / (host.link_efficiency * host.link);
  const Seconds seen = time_beside(copy, compute, Mover::kCopyEngine, 1);
  return {Seconds(), seen, seen};
}
void wait_for_copy(const HostSpec& host, Bytes bytes, HostDeviceTime& time) {
  if (bytes > Bytes()) time = then(time, exposed_copy(host, bytes, time.device));
}
void wait_for_copy(const HostSpec& host, Bytes bytes, PhaseCost& phase) {
  if (bytes == Bytes()) return;
  const HostDeviceTime seen = exposed_copy(host, bytes, phase.time.device);
  phase.work[StepTerm::kElementwise] += seen.device;
  phase.by_source[PriceSource::kModel] += seen.device;
  phase.time = then(phase.time, seen);
}

// Returns the tasks of a chunk; backward includes the accumulation of gradients. `Cost` contains
// time or memory.
template <class Cost, class Layers>
ByTask<Cost> composed(const Scenario& scenario, const Plan& plan, const ChunkKind& kind,
                      const Layers& layers_of) {
  ByTask<Cost> tasks;
  Cost accumulate;  // in the order of the parameter store
  for (const ChunkLayer& layer : chunk_layers(scenario, plan, kind)) {
    const LayerTasks<Cost>& cost = layers_of(layer.kind, plan_of(layer, plan), layer.block);
    ByTask<Cost> once = cost;
    if constexpr (std::is_same_v<Cost, MemoryChange>) {
      if (layer.offloads) hand_to_host(once);
    }
    for (const TaskKind task : kTaskKinds) {
      const Cost all = repeat(once[task], layer.count);
      tasks[task] = task == TaskKind::kForward ? then(tasks[task], all) : then(all, tasks[task]);
    }
    accumulate = then(accumulate, repeat(cost.accumulate, layer.count));
  }
  tasks[TaskKind::kBackward] = then(tasks[TaskKind::kBackward], accumulate);
  return tasks;
}

// Memory of backward if a layer's unsharded gradients are still in reduction during the backward of
// the next layer.
class GradientsInReduction {
 public:
  GradientsInReduction(LayerPricer& pricer, const Plan& plan) : pricer_(pricer), plan_(plan) {}

  // Returns the memory of a chunk's backward. At its end all reductions are complete.
  MemoryChange backward(const ChunkKind& chunk) {
    MemoryChange all;
    const std::vector<ChunkLayer> layers = chunk_layers(pricer_.scenario(), plan_, chunk);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) add(all, *layer);
    return all;
  }

 private:
  void add(MemoryChange& all, const ChunkLayer& layer) {
    const LayerMemory& memory =
        pricer_.layer_memory(layer.kind, plan_of(layer, plan_), layer.block);
    ByTask<MemoryChange> tasks = memory;
    if (layer.offloads) hand_to_host(tasks);
    const MemoryChange& backward = tasks[TaskKind::kBackward];
    // The reductions of all blocks end before the embedding's backward.
    if (layer.kind == LayerKind::kEmbedding) behind_ = 0;
    all = followed(all, backward);
    behind_ = memory.gradients;
    all = followed(all, repeat(backward, layer.count - 1));
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
  double behind_ = 0;  // bytes of the previous layer's gradients in reduction
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

// Adds the exchange of delayed scales and the copies of offloaded activations to forward and
// backward of a chunk.
template <class Cost>
void add_exchanges(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind, const Cost& scales,
                   ByTask<Cost>& tasks) {
  const Bytes offloaded = offloaded_bytes(pricer, plan, kind);
  for (const TaskKind task : {TaskKind::kForward, TaskKind::kBackward}) {
    tasks[task] = then(tasks[task], scales);
    wait_for_copy(pricer.scenario().cluster.host, offloaded, tasks[task]);
  }
}

}  // namespace

bool layer_gradients_stay(const StackSpec& stack, const Plan& plan) {
  return stack.memory.layer_in_reduction && overlaps_reduction(stack) && plan.zero >= 2 &&
         has_replicas(plan) && !holds_whole_gradients(plan, stack.training);
}

Plan plan_of(const ChunkLayer& layer, const Plan& plan) {
  const bool varies = layer.kind == LayerKind::kBlock && plan.recompute == Recompute::kBlocks;
  return varies ? with_whole_recompute(plan, layer.recomputes) : plan;
}

std::vector<ChunkLayer> chunk_layers(const Scenario& scenario, const Plan& plan,
                                     const ChunkKind& kind) {
  const ModelSpec& model = scenario.model;
  std::vector<ChunkLayer> layers;
  if (kind.is_first) layers.push_back({.kind = LayerKind::kEmbedding});
  append_blocks(layers, scenario, plan, kind);
  if (!kind.is_last) return layers;
  // Each MTP layer adds a block and another pass through the head.
  const std::int64_t more = model.ends.prediction_layers;
  for (const std::int64_t block : prediction_kinds(model)) {
    append(layers, {.block = block, .count = more});
  }
  append(layers, {.kind = LayerKind::kHead, .count = 1 + more});
  return layers;
}

ChunkCost chunk_cost(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  const auto layer_cost = [&](LayerKind layer, const Plan& of,
                              std::int64_t block) -> const LayerCost& {
    return pricer.layer(layer, of, block);
  };
  ChunkCost cost{kind, composed<PhaseCost>(pricer.scenario(), plan, kind, layer_cost),
                 chunk_memory(pricer, plan, kind)};
  add_exchanges(pricer, plan, kind, pricer.scale_exchange(plan, kind.blocks), cost.tasks);
  return cost;
}

ChunkTimes chunk_times(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  ChunkTimes times = composed<HostDeviceTime>(
      pricer.scenario(), plan, kind, [&](LayerKind layer, const Plan& of, std::int64_t block) {
        const LayerCost& cost = pricer.layer(layer, of, block);
        LayerTasks<HostDeviceTime> of_layer;
        for (const TaskKind task : kTaskKinds) of_layer[task] = cost[task].time;
        of_layer.accumulate = cost.accumulate.time;
        return of_layer;
      });
  add_exchanges(pricer, plan, kind, pricer.scale_exchange(plan, kind.blocks).time, times);
  return times;
}

ChunkMemory chunk_memory(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind) {
  ChunkMemory memory = composed<MemoryChange>(
      pricer.scenario(), plan, kind,
      [&](LayerKind layer, const Plan& of, std::int64_t block) -> const LayerMemory& {
        return pricer.layer_memory(layer, of, block);
      });
  if (layer_gradients_stay(pricer.scenario().stack, plan)) {
    memory[TaskKind::kBackward] = GradientsInReduction(pricer, plan).backward(kind);
  }
  return memory;
}

FixedCosts fixed_costs(LayerPricer& pricer, const Plan& plan) {
  const ModelSpec& model = pricer.scenario().model;
  const Finetune& finetune = finetune_of(pricer.scenario().stack);
  const bool is_alike = trains_table(model, finetune, false) == trains_table(model, finetune, true);
  const LayerKind head_table = is_alike ? LayerKind::kWordEmbeddings : LayerKind::kHeadTable;
  FixedCosts costs{{},
                   &pricer.fixed(LayerKind::kEmbedding, plan),
                   &pricer.fixed(LayerKind::kWordEmbeddings, plan),
                   &pricer.fixed(head_table, plan),
                   &pricer.fixed(LayerKind::kHead, plan),
                   overwrites_gradients(pricer.scenario().stack.training)};
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
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
      add(sum, *fixed.blocks[static_cast<std::size_t>(kind)], prediction_weights(model));
    }
    // Tied word embeddings: one table if the same stage has embedding and head, else one copy on
    // each of the two stages.
    const bool shared = model.tied_embedding && stage.is_first;
    if (!shared) add(sum, *fixed.head_table, 1);
    if (fixed.head_overwrites) {
      sum.end[StepEndPart::kZeroGrad] -= fixed.head_table->end[StepEndPart::kZeroGrad];
    }
  }
  return sum;
}

PlanCosts plan_costs(LayerPricer& pricer, const Plan& plan) {
  PlanCosts costs;
  costs.cut = stage_cut(plan.stage_layers, plan.degrees.pp, pricer.scenario().model);
  const StageCut& cut = costs.cut;
  if (plan.degrees.pp > 1) costs.transfer = pricer.transfer(plan);
  for (const ChunkKind& kind : cut.chunks) costs.kinds.push_back(chunk_cost(pricer, plan, kind));
  const FixedCosts fixed = fixed_costs(pricer, plan);
  costs.gradient_stand_ins = gradient_stand_ins(fixed);
  for (const StageRun& run : cut.runs) {
    const StageKind& kind = cut.stages[static_cast<std::size_t>(run.kind)];
    FixedCost cost = stage_fixed(fixed, pricer.scenario().model, kind);
    const auto in_flight = static_cast<double>(std::min(micro_batches(plan), plan.degrees.pp));
    for (const std::int32_t chunk : kind.chunks) {
      const ChunkKind& of_stage = cut.chunks[static_cast<std::size_t>(chunk)];
      cost.host += in_flight * offloaded_bytes(pricer, plan, of_stage);
    }
    costs.stages.insert(costs.stages.end(), static_cast<std::size_t>(run.count),
                        {cost, kind.chunks});
  }
  return costs;
}

PipelineTimes pipeline_times(const StackSpec& stack, const PlanCosts& costs) {
  PipelineTimes times;
  for (const StageCost& stage : costs.stages) {
    StageTimes& t = times.stages.emplace_back();
    for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
      const ChunkCost& chunk = costs.chunk(stage, i);
      ChunkTimes of_chunk;
      for (const TaskKind task : kTaskKinds) of_chunk[task] = chunk.tasks[task].time;
      PassTimes pass = pass_times(stack, of_chunk, std::ssize(stage.chunks));
      if (!chunk.is_first) pass[TaskKind::kForward] += costs.transfer.gather;
      if (!chunk.is_last) pass[TaskKind::kBackward] += costs.transfer.gather;
      for (const TaskKind task : kTaskKinds) t[task].push_back(to_picoseconds(pass[task]));
    }
  }
  times.transfer = to_picoseconds(costs.transfer.wire);
  times.p2p = p2p_habits(stack, std::ssize(costs.stages.front().chunks));
  return times;
}

}  // namespace tpsim
