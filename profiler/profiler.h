// Times the ops and collectives of a set of plans on this machine. The result is the samples of a
// Profile file, which sim/ reads.
//
// All ranks of a world run profile_rank() with the same request at the same time. The samples of
// all ranks together form the profile. Time is measured only with DeviceMark, on the device's own
// clock.
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

// A step of one rank of a plan, to time ops in the middle of a step. The real program of the rank
// runs without waiting for other ranks, and every op is timed.
//
// The caches then hold the same operands as in a real step. This matters for large caches: on a CPU
// an elementwise op after a GEMM takes half the time that it takes on cold operands. All ranks of
// the world time their ops at the same time, so that cores and memory are as busy as in training.
struct InStepRun {
  ModelSpec model;
  Plan plan;
  TrainingOptions options;
  std::int64_t rank = 0;  // rank in the plan
};

struct InStepSettings {
  std::size_t least_steps = 5;  // minimum number of undisturbed steps
  int most_steps = 8;
};

// Runs steps and adds to `samples` the mean time of each op in each undisturbed step. Every rank of
// the barrier calls this, with any plan and rank. Error if the device has too little memory.
Status time_in_steps(Device& device, LoadMeter& meter, RankBarrier& barrier, const InStepRun& run,
                     const InStepSettings& settings, Samples& samples);

struct ProfileRequest {
  std::vector<OpKey> ops;               // no duplicates; ops in no step are timed alone
  std::vector<InStepRun> in_step_runs;  // distributed over the ranks of the world in turn
  std::vector<CollectiveNeed> collectives;
  OpTimerSettings op_timer;
  // Whether to time GEMMs and flash attention also at sustained clocks, for devices that slow down
  // under load.
  bool sustained = false;
  InStepSettings in_step;
  // No in-step run starts after this time; the ops of skipped runs are timed alone. No single op
  // starts after as much time again.
  std::optional<Seconds> budget;
  CollectiveTimerSettings collective_timer;
};

// Compares a small version of every op on `device` with the slow reference device. The first wrong
// result is an error of kind kBug that names the op.
Status check_ops(Device& device, const std::vector<OpKey>& keys,
                 const std::function<void(double)>& progress);

// Times everything in `request`, and returns the samples of this rank. Calls `progress` with the
// completed share, in [0,1].
Result<Samples> profile_rank(World& world, Device& device, LoadMeter& meter,
                             const ProfileRequest& request,
                             const std::function<void(double)>& progress);

}  // namespace tpsim
