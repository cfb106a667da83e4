// Pipeline schedules as lists of work: which micro-batch of which chunk, forward or backward, in
// which order, on every stage. The executor runs these lists and the simulator times them.
//
//   gpipe        all forwards, then all backwards (Huang et al. 2019)
//   1f1b         p - 1 - stage warm-up forwards, then one forward, one backward (PipeDream-flush,
//                Narayanan et al. 2021)
//   interleaved  1f1b over `virtual_stages` chunks per stage in groups of p micro-batches (section
//                2.2 of the same paper); warm-up 2(p - 1 - stage) + (v - 1)p
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace tpsim {

struct PipelineTask {
  bool forward = true;
  std::int32_t chunk = 0;  // local: the global chunk is chunk * pp + stage
  std::int32_t micro_batch = 0;
  friend bool operator==(const PipelineTask&, const PipelineTask&) = default;
};

struct PipelineShape {
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
};
PipelineShape pipeline_shape(const Plan& plan);

// The k-th task of a stage, k in [0, 2 * micro_batches * virtual_stages).
PipelineTask nth_task(const PipelineShape& shape, std::int64_t stage, std::int64_t k);

// The tasks of one stage in the order in which it runs them.
std::vector<PipelineTask> schedule_of(const PipelineShape& shape, std::int64_t stage);

// Whether every forward is followed by its own backward: one stage of one chunk, one micro-batch in
// flight.
bool alternates(const PipelineShape& shape);

// Forwards that a stage runs before its first backward.
std::int64_t warmup_forwards(const PipelineShape& shape, std::int64_t stage);

// Most micro-batches of one chunk's stage that are between forward and backward at once, summed
// over the stage's chunks; for 1f1b min(m, p - stage).
std::int64_t most_in_flight(const PipelineShape& shape, std::int64_t stage);

}  // namespace tpsim
