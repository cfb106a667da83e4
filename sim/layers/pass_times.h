// How host time adds to the tasks of the pipeline.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/software/stack_spec.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_cost.h"

namespace tpsim {

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
