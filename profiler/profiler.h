// Times what a set of plans needs on the machine at hand. What comes out is a Profile's samples;
// sim/ reads them from the file.
//
// Every rank of a world runs the same profile_rank() at the same time; the samples of all ranks
// together make the profile. Devices tell the time through their marks alone.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/software/stack_spec.h"
#include "profiler/collective_timer.h"
#include "profiler/load_meter.h"
#include "profiler/op_timer.h"
#include "profiler/rank_barrier.h"
#include "profiler/samples.h"
#include "ranks/world.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// Ops timed in the middle of a step: the real program of one rank runs alone, without waiting for
// the others, and every op in it is timed.
//
// This finds operands in the caches where a step leaves them, which matters where caches are large:
// on a CPU an elementwise op after a product takes half as long as on cold operands. All ranks of
// the world time their ops at the same time, so that cores and memory are as busy as in training.
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

struct ProfileRequest {
  std::vector<OpKey> ops;  // each once; those that no step reaches are timed by themselves
  std::vector<InStepRun> in_step_runs;  // the ranks of the world take one each, in turn
  std::vector<CollectiveNeed> collectives;
  OpTimerSettings op_timer;
  // Times products and flash attention once more at sustained clocks: on devices that get slower
  // when they have worked for a while.
  bool sustained = false;
  InStepSettings in_step;
  // No in-step run begins after this long; what the others would have reached is timed by itself.
  std::optional<Seconds> in_step_budget;
  CollectiveTimerSettings collective_timer;
};

// Runs every op, made small, on `device` and on the slow device. The first result that is off is an
// error of kind kBug which names the op.
Status check_ops(Device& device, const std::vector<OpKey>& keys,
                 const std::function<void(double)>& progress);

// `progress` is called with the share that is done, in [0,1].
Result<Samples> profile_rank(World& world, Device& device, LoadMeter& meter,
                             const ProfileRequest& request,
                             const std::function<void(double)>& progress);

}  // namespace tpsim
