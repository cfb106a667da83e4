#include "sim/memory/stage_memory.h"

#include <algorithm>

#include "reference_model/parallel/process_groups.h"
#include "sim/step/step.h"

namespace tpsim {
namespace {

using memory_index::kActivations;
using memory_index::kCommunication;
using memory_index::kGradients;
using memory_index::kOptimizer;
using memory_index::kWorkspace;

MemoryChange of_activations(double bytes) {
  MemoryChange change;
  change.left[kActivations] = bytes;
  change.highest[kActivations] = change.each[kActivations] = std::max(0.0, bytes);
  return change;
}

MemoryChange task(double received, const MemoryChange& work, double sent) {
  return then(then(of_activations(received), work), of_activations(-sent));
}

void consider(const BytesByCategory& level, const BytesByCategory& above,
              const BytesByCategory& each_above, TensorPeak& peak) {
  BytesByCategory now = level;
  for (std::size_t i = 0; i < now.size(); ++i) {
    now[i] += above[i];
    peak.each[i] = std::max(peak.each[i], level[i] + each_above[i]);
  }
  if (total(now) > total(peak.highest)) peak.highest = now;
}

}  // namespace

ChunkMemory with_transfers(const ChunkMemory& chunk, const ChunkKind& kind, double transfer) {
  const double front = kind.is_first ? 0 : transfer;
  const double back = kind.is_last ? 0 : transfer;
  ChunkMemory memory = chunk;
  memory[TaskKind::kForward] = task(front, chunk[TaskKind::kForward], back);
  memory[TaskKind::kBackward] = task(back, chunk[TaskKind::kBackward], front);
  return memory;
}

TensorPeak tensor_peak(const FixedCost& stage, const std::vector<const ChunkMemory*>& kinds,
                       const PeakMoments& moments, const StepHabits& habits) {
  TensorPeak peak{stage.held, stage.held};
  BytesByCategory before_backward = stage.held;
  if (habits.frees_gradients) before_backward[kGradients] = 0;
  before_backward[kWorkspace] += habits.narrow_gradients * stage.held[kGradients];
  for (std::size_t k = 0; k < moments.size(); ++k) {
    BytesByCategory level = before_backward;
    const auto in_flight = moments.in_flight(k), awaiting = moments.awaiting(k);
    const auto add = [&level](std::int32_t micro_batches, const BytesByCategory& left) {
      const auto n = static_cast<double>(micro_batches);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] += n * left[i];
    };
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      add(in_flight[kind], (*kinds[kind])[TaskKind::kForward].left);
      if (awaiting.empty()) continue;
      add(awaiting[kind], (*kinds[kind])[TaskKind::kForward].left);
      add(awaiting[kind], (*kinds[kind])[TaskKind::kBackward].left);
    }
    const PeakMoments::Task& task = moments.task(k);
    const MemoryChange& change = (*kinds[static_cast<std::size_t>(task.chunk_kind)])[task.kind];
    consider(level, change.highest, change.each, peak);
  }
  BytesByCategory update = stage.update;
  update[kWorkspace] += habits.optimizer_copy * stage.held[kOptimizer];
  consider(stage.held, update, update, peak);
  if (habits.separate_pools) peak.cached = total(peak.each) - total(peak.highest);
  return peak;
}

MemoryOverheads memory_overheads(const StackMemory& stack, const Plan& plan, Bytes stand_ins) {
  MemoryOverheads overheads;
  overheads.workspace = stack.library_workspace;
  // The shapes of one block suffice, because other blocks have the same shapes.
  if (stack.gradient_stand_ins) overheads.workspace += stand_ins;
  // A communicator for each process group. Frameworks reduce and gather in one group.
  overheads.buffers = static_cast<double>(busy_groups(plan, {})) * stack.collective_buffers;
  // The flat gradient bucket for data-parallel reduction.
  if (has_replicas(plan)) {
    overheads.bucket =
        Bytes(static_cast<double>(stack.reduction_bucket * size_of(plan.gradient_dtype)));
  }
  return overheads;
}

StageMemory stage_memory(const StackMemory& stack, const StepHabits& habits,
                         const MemoryOverheads& overheads, const BytesByCategory& held,
                         const TensorPeak& peak) {
  StageMemory memory;
  for (std::size_t i = 0; i < peak.highest.size(); ++i) {
    memory.by_category[i] = Bytes(peak.highest[i]);
  }
  memory.by_category[kWorkspace] += overheads.workspace;
  memory.by_category[kCommunication] +=
      // A bucket is at most as large as the stage's gradients.
      overheads.buffers + std::min(overheads.bucket, Bytes(held[kGradients]));
  memory.context = stack.context;
  memory.fragmentation =
      stack.fragmentation * (memory.by_category[kActivations] + memory.by_category[kWorkspace]);
  if (habits.splits_blocks) {
    memory.fragmentation += Bytes(total(peak.each) - total(peak.highest));
  } else {
    memory.fragmentation += Bytes(peak.cached);
  }
  return memory;
}

std::vector<StageMemory> memory_by_stage(const StackSpec& stack, const Plan& plan,
                                         const PlanCosts& costs) {
  const PipelineShape shape = pipeline_shape(plan);
  const MemoryOverheads overheads = memory_overheads(stack.memory, plan, costs.gradient_stand_ins);
  const StepHabits habits = step_habits(stack, plan);
  std::vector<ChunkMemory> chunks;
  for (const ChunkCost& chunk : costs.kinds) {
    chunks.push_back(with_transfers(chunk.memory, chunk, costs.transfer.bytes));
  }
  const StageCut& cut = costs.cut;
  std::vector<StageMemory> result;
  for (const StageRun& run : cut.runs) {
    const StageKind& kind = cut.stages[static_cast<std::size_t>(run.kind)];
    std::vector<const ChunkMemory*> kinds;
    for (const std::int32_t chunk : kind.kinds) {
      kinds.push_back(&chunks[static_cast<std::size_t>(chunk)]);
    }
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto s = static_cast<std::int64_t>(result.size());
      const StageCost& stage = costs.stages[result.size()];
      const TensorPeak peak = tensor_peak(stage, kinds, PeakMoments(shape, s, kind), habits);
      result.push_back(stage_memory(stack.memory, habits, overheads, stage.held, peak));
      result.back().stage = s;
    }
  }
  return result;
}

}  // namespace tpsim
