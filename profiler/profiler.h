// Times the ops and collectives of a set of plans on this machine. The result is the samples of a
// Profile; sim/ reads them from the file.
//
// All ranks of a world run the same profile_rank() at the same time, and the samples of all ranks
// form the profile. Devices are timed by their marks only.
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

// Times ops in the middle of a step. The real program of one rank runs without waiting for other
// ranks, and every op is timed.
//
// Operands are then in the caches as in a real step, which matters for large caches: on a CPU an
// elementwise op after a GEMM takes half the time that it takes on cold operands. All ranks of the
// world time their ops at the same time, so that cores and memory are as busy as in training.
struct InStepRun {
  ModelSpec model;
  Plan plan;
  TrainingOptions options;
  std::int64_t rank = 0;  // rank in the plan
};

struct InStepSettings {
  std::size_t least_steps = 5;  // undisturbed steps
  int most_steps = 8;
};

// Runs the steps and adds the mean time of each op, per step. Every rank of the barrier calls this,
// with any plan and rank. Error if the device has too little memory.
Status time_in_steps(Device& device, LoadMeter& meter, RankBarrier& barrier, const InStepRun& run,
                     const InStepSettings& settings, Samples& samples);

struct ProfileRequest {
  std::vector<OpKey> ops;               // each once; ops that no step contains are timed alone
  std::vector<InStepRun> in_step_runs;  // distributed over the ranks of the world in turn
  std::vector<CollectiveNeed> collectives;
  OpTimerSettings op_timer;
  // Also times GEMMs and flash attention at sustained clocks, for devices that slow down under
  // load.
  bool sustained = false;
  InStepSettings in_step;
  // No in-step run starts after this time; ops of skipped runs are timed alone.
  std::optional<Seconds> in_step_budget;
  CollectiveTimerSettings collective_timer;
};

// Runs a small version of every op on `device` and on the slow device. The first wrong result is an
// error of kind kBug that names the op.
Status check_ops(Device& device, const std::vector<OpKey>& keys,
                 const std::function<void(double)>& progress);

// `progress` is called with the completed share, in [0,1].
Result<Samples> profile_rank(World& world, Device& device, LoadMeter& meter,
                             const ProfileRequest& request,
                             const std::function<void(double)>& progress);

}  // namespace tpsim
