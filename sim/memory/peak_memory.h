// The memory of every stage over a step: samples for a trace, and the contents at the peak.
#pragma once

#include <array>
#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "core/scenario/scenario.h"
#include "sim/memory/memory_walk.h"

namespace tpsim {

// Memory of a group. Negative: traced memory that the framework does not keep. The traced tensor
// counts in its own group.
struct LiveMemory {
  TensorGroup group;
  double bytes = 0;
};

// Contents of a stage's memory when its tensors are at their peak.
struct PeakMemory {
  std::int64_t stage = 0;
  TimelineSpan task = {};        // in which the peak occurs
  std::vector<LiveMemory> live;  // largest first: tensors, and the overheads of StageMemory
  double tensors = 0;            // bytes of tensors and of the libraries' workspace

  double total() const;  // bytes of `live`
};

// Bytes of a stage's tensors by MemoryCategory.
struct MemorySample {
  Picoseconds time = 0;
  std::array<double, kMemoryCategoryCount> bytes{};
};

using MemorySamples = std::vector<MemorySample>;  // in order of time

struct StepMemory {
  Timeline timeline;
  std::vector<PeakMemory> peaks = {};       // by stage
  std::vector<MemorySamples> samples = {};  // by stage: peak and end of each task
  // By stage: memory besides tensors, the same over the whole step. Added to the highest sample, it
  // gives the predicted memory of the stage.
  std::vector<StageMemory> overheads = {};
};

// Calls `visit` with the memory of a stage over a step, as walk_memory(). The plan must be legal.
void visit_memory(const Scenario& scenario, const Plan& plan, std::int64_t stage,
                  const MemoryVisitor& visit);

// The memory of one stage: an element of each list of StepMemory.
struct StageOverStep {
  PeakMemory peak;
  MemorySamples samples;
  StageMemory overheads;
};
// `memory`: of the stage, by memory_by_stage().
StageOverStep stage_over_step(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                              const Timeline& timeline, const StageMemory& memory);

// Returns the memory over one step. Errors are those of simulate().
Result<StepMemory> step_memory(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim
