// Memory by stage: what is allocated for good, what the schedule keeps in flight, and what the
// device, its libraries and the allocator add.
#include <algorithm>

#include "sim/step.h"

namespace tpsim {
namespace {

constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);

// Replays a stage's schedule on the level of tasks.
class StageReplay {
 public:
  StageReplay(const PlanCosts& costs, const StageCost& stage)
      : costs_(costs), stage_(stage), transfer_(costs.transfer.bytes) {
    level_ = highest_ = each_ = stage.fixed;
  }

  void run(const PipelineTask& task) {
    const ChunkCost& chunk = costs_.chunk(stage_, static_cast<std::size_t>(task.chunk));
    // A task's input is received into a new tensor; its output is freed once it is sent.
    const bool receives = task.forward ? !chunk.is_first : !chunk.is_last;
    const bool sends = task.forward ? !chunk.is_last : !chunk.is_first;
    if (receives) level_[kActivations] += transfer_;
    const MemoryChange& change = (task.forward ? chunk.forward : chunk.backward).memory;
    consider(change.highest, change.each);
    for (std::size_t i = 0; i < level_.size(); ++i) level_[i] += change.left[i];
    consider({}, {});
    if (sends) level_[kActivations] -= transfer_;
  }

  // As after `n` forwards of the first chunk.
  void hold(std::int64_t n) {
    const BytesByCategory before = level_;
    run({true, 0, 0});
    for (std::size_t i = 0; i < level_.size(); ++i) {
      level_[i] = before[i] + static_cast<double>(n) * (level_[i] - before[i]);
    }
  }

  // What is allocated at the end of the step comes on top of the fixed parts.
  void end_step() {
    level_ = stage_.fixed;
    consider(stage_.update, stage_.update);
  }

  const BytesByCategory& highest() const { return highest_; }
  // Of every category by itself.
  const BytesByCategory& each() const { return each_; }

 private:
  void consider(const BytesByCategory& above, const BytesByCategory& each_above) {
    BytesByCategory now = level_;
    for (std::size_t i = 0; i < now.size(); ++i) {
      each_[i] = std::max(each_[i], level_[i] + each_above[i]);
      now[i] += above[i];
    }
    if (total(now) > total(highest_)) highest_ = now;
  }

  const PlanCosts& costs_;
  const StageCost& stage_;
  double transfer_;  // bytes of one activation
  BytesByCategory level_{};
  BytesByCategory highest_{};
  BytesByCategory each_{};
};

// Runs as much of a stage's schedule as decides its peak.
void replay_schedule(StageReplay& replay, const PipelineShape& shape, std::int64_t stage) {
  if (shape.virtual_stages == 1) {
    // One chunk: the peak comes with the most micro-batches in flight.
    replay.hold(most_in_flight(shape, stage) - 1);
    replay.run({true, 0, 0});
    replay.run({false, 0, 0});
    return;
  }
  // After the warm-up every cycle through the chunks looks like the one before.
  const std::int64_t all = 2 * shape.micro_batches * shape.virtual_stages;
  const std::int64_t enough =
      warmup_forwards(shape, stage) + 2 * shape.stages * shape.virtual_stages + 2;
  for (std::int64_t k = 0; k < std::min(all, enough); ++k) replay.run(nth_task(shape, stage, k));
}

// The flat copy of gradients on their way over the data-parallel group.
Bytes bucket_bytes(const StackMemory& stack, const Plan& plan, const StageCost& stage) {
  if (plan.degrees.dp == 1) return Bytes();
  const double bucket = static_cast<double>(stack.reduction_bucket * size_of(plan.gradient_dtype));
  return Bytes(std::min(bucket, stage.fixed[static_cast<std::size_t>(MemoryCategory::kGradients)]));
}

// Communicators that a rank takes part in: each holds buffers.
std::int64_t communicators(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  std::int64_t count = gpu_count(plan) > 1 ? 1 : 0;  // world
  if (d.tp > 1) ++count;
  if (d.dp > 1) ++count;
  if (d.pp > 1) count += 2;
  return count;
}

}  // namespace

std::vector<StageMemory> memory_by_stage(const StackSpec& stack_spec, const Plan& plan,
                                         const PlanCosts& costs) {
  const PipelineShape shape = pipeline_shape(plan);
  const StackMemory& stack = stack_spec.memory;
  std::vector<StageMemory> result;
  for (std::int64_t s = 0; s < shape.stages; ++s) {
    StageReplay replay(costs, costs.stages[static_cast<std::size_t>(s)]);
    replay_schedule(replay, shape, s);
    replay.end_step();
    StageMemory& memory = result.emplace_back();
    memory.stage = s;
    for (std::size_t i = 0; i < replay.highest().size(); ++i) {
      memory.by_category[i] = Bytes(replay.highest()[i]);
    }
    auto& workspace = memory.by_category[static_cast<std::size_t>(MemoryCategory::kWorkspace)];
    auto& buffers = memory.by_category[static_cast<std::size_t>(MemoryCategory::kCommunication)];
    workspace += stack.library_workspace;
    buffers += static_cast<double>(communicators(plan)) * stack.collective_buffers +
               bucket_bytes(stack, plan, costs.stages[static_cast<std::size_t>(s)]);
    memory.context = stack.context;
    memory.fragmentation = stack.fragmentation * (memory.by_category[kActivations] + workspace);
    if (stack.caching_allocator) {
      memory.fragmentation += Bytes(total(replay.each()) - total(replay.highest()));
    }
  }
  return result;
}

}  // namespace tpsim
