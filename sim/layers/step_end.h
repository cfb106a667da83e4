// Parts of a step outside its pipeline, and how host time adds to the tasks of the pipeline.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/software/cpu_optimizers.h"
#include "core/software/stack_spec.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_cost.h"

namespace tpsim {

// Times of a stage from its last task to the global norm, where all ranks synchronize.
struct BeforeNorm {
  Seconds tied, reduction,
      local;  // local: reduction of sequence-parallel gradients, and sums of squares
  Seconds total() const { return tied + reduction + local; }
};

// Returns the exposed time of a reduction that overlaps with the backward of the last micro-batch.
// Includes the slowdown of the overlapped compute.
inline Seconds exposed_reduction(const StackSpec& stack, Seconds reduction, Seconds last_backward) {
  if (!overlaps_reduction(stack)) return reduction;
  const Seconds hidden = std::min(reduction, last_backward);
  return reduction - hidden + (stack.overlap_slowdown - 1.0) * hidden;
}

inline Seconds exposed_gather(const StackSpec& stack, Seconds gather, Seconds first_forward) {
  if (!overlaps_gather(stack)) return gather;
  const Seconds hidden = std::min(gather, first_forward);
  return gather - hidden + (stack.overlap_slowdown - 1.0) * hidden;
}

// Returns the exposed time of the update, without the weight gather. An offloaded update may
// overlap with the backward of the last micro-batch.
inline Seconds update_time(const StackSpec& stack, const Plan& plan, const StepEndCost& end,
                           Seconds last_backward) {
  const bool overlaps =
      plan.offload == Offload::kOptimizer && row_of(cpu_optimizer(stack)).overlaps_backward;
  const Seconds hidden =
      overlaps ? std::min(end[StepEndPart::kOptimizer], last_backward) : Seconds();
  return end[StepEndPart::kOptimizer] - hidden + end[StepEndPart::kZeroGrad];
}

// `last_backward`: the tasks of all chunks of the stage that compute the last weight gradients.
inline BeforeNorm before_norm(const StackSpec& stack, const StepEndCost& end,
                              Seconds last_backward) {
  const Seconds reduction = end[StepEndPart::kDataParallelReduction];
  return {end[StepEndPart::kEmbeddingGradients], exposed_reduction(stack, reduction, last_backward),
          end[StepEndPart::kSequenceParallelGradients] + end[StepEndPart::kGradNorm]};
}

// Returns a forward that begins with the host work per micro-batch. With a single stage there are
// no receives to wait for, so the host runs ahead over micro-batches.
inline HostDeviceTime single_stage_forward(const StackSpec& stack, const HostDeviceTime& forward) {
  const Seconds fixed = stack.host.per_micro_batch;
  return then(HostDeviceTime{fixed, Seconds(), fixed}, forward);
}

// Times for which one micro-batch's tasks in a chunk occupy a pipeline stage.
using PassTimes = ByTask<Seconds>;

// If the host runs ahead, host time counts only where the host is slower than the device over
// all tasks together. Otherwise the host waits for every receive, and every pass begins
// with empty queues.
inline PassTimes pass_times(const StackSpec& stack, const ByTask<HostDeviceTime>& tasks,
                            std::int64_t chunks) {
  PassTimes times;
  for (const TaskKind task : kTaskKinds) times[task] = tasks[task].alone();
  times[TaskKind::kForward] += stack.host.per_micro_batch;
  if (!runs_ahead(stack, chunks)) return times;
  // Interleaved schedules do not split the backward.
  const HostDeviceTime once =
      then(single_stage_forward(stack, tasks[TaskKind::kForward]), tasks[TaskKind::kBackward]);
  PassTimes host;
  Seconds all_host;
  for (const TaskKind task : kTaskKinds) {
    host[task] = std::max(Seconds(), times[task] - tasks[task].device);
    all_host += host[task];
    times[task] = tasks[task].device;
  }
  if (all_host <= Seconds()) return times;
  const double shown = std::max(0.0, (period(once) - once.device) / all_host);
  for (const TaskKind task : kTaskKinds) times[task] += shown * host[task];
  return times;
}

}  // namespace tpsim
