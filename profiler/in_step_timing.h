// Ops timed in the middle of a step: the real program of one rank runs alone, without waiting for
// the others, and every op in it is timed.
//
// This finds operands in the caches where a step leaves them, which matters where caches are large:
// on a CPU an elementwise op after a product takes half as long as on cold operands. All ranks of
// the world time their ops at the same time, so that cores and memory are as busy as in training.
#pragma once

#include "core/stack_spec.h"
#include "profiler/load_meter.h"
#include "profiler/rank_barrier.h"
#include "profiler/samples.h"
#include "ranks/world.h"
#include "reference_model/rank_context.h"

namespace tpsim {

struct InStepRun {
  ModelSpec model;
  Plan plan;
  TrainingOptions options;
  std::int64_t rank = 0;  // of the plan
};

struct InStepSettings {
  std::size_t least_steps = 5;  // that nothing disturbed
  int most_steps = 8;
};

// Runs the steps and adds, for every step and op, the mean time of its runs. Every rank of the
// barrier calls this, with whichever plan and rank. Fails when the device has no memory for it.
Status time_in_steps(Device& device, LoadMeter& meter, RankBarrier& barrier, const InStepRun& run,
                     const InStepSettings& settings, Samples& samples);

}  // namespace tpsim
