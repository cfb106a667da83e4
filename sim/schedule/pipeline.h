// Event simulation of the pipeline of one step.
//
// A task starts when its stage is free and its input has arrived. Time is integer picoseconds.
// Every stage runs its tasks in the order of its schedule (reference_model/parallel/schedule.h).
// The result does not depend on the order in which events are handled.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "core/program/timeline.h"
#include "reference_model/parallel/schedule.h"

namespace tpsim {

// Durations of one stage's work per micro-batch, by local chunk.
struct StageTimes {
  std::vector<Picoseconds> forward;
  std::vector<Picoseconds> backward;

  const std::vector<Picoseconds>& of(TaskKind kind) const {
    switch (kind) {
      case TaskKind::kForward: return forward;
      case TaskKind::kBackward: break;
    }
    return backward;
  }
};

struct PipelineTimes {
  std::vector<StageTimes> stages;
  Picoseconds transfer = 0;  // one activation or gradient between stages
  bool sender_waits = true;  // the sending stage is busy until the transfer is done
  // The receiving stage is busy too and receives only when it reaches the task: sends and receives
  // are separate calls, one after the other.
  bool receiver_waits = false;
};

struct PipelineResult {
  std::vector<Picoseconds> finish;   // of each stage's last task
  std::vector<Picoseconds> busy;     // in forward and backward
  std::vector<Picoseconds> sending;  // waiting for its own transfers
  Picoseconds end = 0;               // latest finish
  std::int64_t events = 0;
};

// Appends forward, backward and transfer spans to `timeline` unless it is null.
PipelineResult run_pipeline(const PipelineShape& shape, const PipelineTimes& times,
                            Timeline* timeline);

// Lower bound for all schedules: for every stage, the start of its first task, its own work, and
// the time after its last task. Equal to run_pipeline() for equal stages without transfer time.
Picoseconds pipeline_lower_bound(const PipelineShape& shape, const PipelineTimes& times);

}  // namespace tpsim
