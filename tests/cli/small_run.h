// Predictions for tests of output: round numbers, not simulated.
#pragma once

#include "core/plan/report.h"

namespace tpsim::test {

inline StageMemory stage_memory(std::int64_t stage, double gib) {
  StageMemory memory;
  memory.stage = stage;
  memory.by_category[static_cast<std::size_t>(MemoryCategory::kOptimizer)] = Bytes(gib * kGiB);
  memory.context = Bytes(kGiB);
  return memory;
}

// Two stages of 31 and 11 GiB on a device of 40 GiB; a step of 10 s.
inline PlannedRun small_run() {
  PlannedRun run;
  run.plan.degrees = {2, 2, 2, 1};
  run.plan.global_batch = 16;
  run.plan.stage_layers = {4, 4};
  Prediction& p = run.predicted;
  p.step = Seconds(10);
  p.step_low = Seconds(9);
  p.step_high = Seconds(11);
  p.capacity = Bytes(40 * kGiB);
  p.peak = Bytes(31 * kGiB);
  p.memory = {stage_memory(0, 30), stage_memory(1, 10)};
  p.breakdown = {{StepTerm::kMatmul, Seconds(6)},
                 {StepTerm::kBubble, Seconds(1)},
                 {StepTerm::kOptimizer, Seconds(3)}};
  return run;
}

}  // namespace tpsim::test
