// Event simulation of the pipeline of one step, without the end of the step.
//
// Every stage runs its tasks in the order of its schedule (reference_model/parallel/schedule.h). A
// task starts when its stage is free and its input has arrived. Time is in integer picoseconds. The
// result does not depend on the order in which events are processed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "core/program/timeline.h"
#include "lowering/passes/step_habits.h"
#include "reference_model/parallel/schedule.h"
#include "sim/layers/by_task.h"

namespace tpsim {

// The first kinds of spans are the tasks, in the order of TaskKind.
constexpr SpanKind span_of(TaskKind task) { return static_cast<SpanKind>(task); }
constexpr TaskKind task_of(SpanKind span) { return static_cast<TaskKind>(span); }
static_assert(span_of(TaskKind::kWeightGradient) == SpanKind::kWeightGradient);

// Durations of one stage's tasks for one micro-batch, by local chunk.
using StageTimes = ByTask<std::vector<Picoseconds>>;

struct PipelineTimes {
  std::vector<StageTimes> stages;
  Picoseconds transfer = 0;  // time to send one activation or gradient to another stage
  P2pHabits p2p;
};

struct PipelineResult {
  std::vector<Picoseconds> finish;   // end of each stage's last task
  std::vector<Picoseconds> busy;     // time of each stage in forward and backward
  std::vector<Picoseconds> sending;  // time of each stage in blocking transfers
  Picoseconds end = 0;               // latest finish
  std::int64_t events = 0;
};

// Appends spans of forward, backward and transfers to `timeline`, which may be null.
PipelineResult run_pipeline(const PipelineShape& shape, const PipelineTimes& times,
                            Timeline* timeline);

}  // namespace tpsim
