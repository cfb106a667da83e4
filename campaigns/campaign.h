// A whole training run: from the prediction of one step to days, GPU-hours, energy and money.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "campaigns/assumptions.h"
#include "campaigns/batch_ramp.h"
#include "campaigns/checkpoints.h"
#include "campaigns/failures.h"
#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Whether the run waits until a checkpoint is written, or until it is copied to its hosts.
enum class CheckpointKind : std::uint8_t { kSync, kAsync };
template <>
inline constexpr auto kEnumNames<CheckpointKind> = std::to_array<std::string_view>({"sync",
                                                                                    "async"});

// What spare nodes are chosen for where nobody says how many there are: the least money with them,
// or the least time.
enum class SparesFor : std::uint8_t { kCost, kTime };
template <>
inline constexpr auto kEnumNames<SparesFor> = std::to_array<std::string_view>({"cost", "time"});

// Of what an idle GPU draws over one at work: 50 of 400 W for an A100, 70 of 700 W for an H100.
// Judgement; the rest of an idle node is taken to draw as much as that of the others.
inline constexpr double kIdleDraw = 0.12;

struct CampaignRequest {
  double tokens = 0;
  BatchRamp ramp;
  // Of the full batch, as measured. Zero: as predicted. Smaller batches of a ramp are predicted and
  // scaled by measured over predicted time of the full batch.
  Seconds step;
  Seconds checkpoint_interval;  // work between checkpoints; zero: the best one
  CheckpointKind checkpoints = CheckpointKind::kSync;
  SparesFor spares_for = SparesFor::kCost;
  std::int64_t replays = 2000;
  std::uint64_t seed = 1;
  // Widens the interval of the predicted full batch by what nobody stated
  // (plans/questions/open_inputs.h); may be empty.
  std::function<void(PlannedRun&)> widen = {};
};

struct CampaignCheckpoints {
  Bytes size;
  Seconds write;  // to storage, all ranks together
  Seconds stop;   // for which training waits: `write`, or of async ones the copy to the hosts
  Seconds best;   // by the closed form itself; the next two approximate it
  Seconds young;
  Seconds daly;
  Seconds interval;        // what the campaign uses
  std::int64_t steps = 0;  // of the full batch nearest to the interval: --save-interval
  std::int64_t count = 0;
};

// Wall time by what it is spent on. The parts add up to wall().
struct CampaignTime {
  Seconds steps;
  Seconds checkpoints;
  Seconds failures;  // lost work and restarts, expected
  Seconds waiting;   // for a node while no spare node is left, mean of the replays
  Seconds downtime;
  Seconds wall() const { return steps + checkpoints + failures + waiting + downtime; }
  double goodput() const { return steps / wall(); }
};

struct CampaignCost {
  double gpu_hours = 0;           // the plan's GPUs over the wall time
  double reserved_hours = 0;      // and the spare nodes' with them
  double gpu_kwh = 0;             // GPUs alone
  double total_kwh = 0;           // with the rest of their nodes, times PUE
  double gpu_co2_t = 0;           // of gpu_kwh
  double total_co2_t = 0;         // of total_kwh
  double reserved_gpu_kwh = 0;    // gpu_kwh, and the idle GPUs of spare nodes
  double reserved_total_kwh = 0;  // likewise
  double reserved_gpu_co2_t = 0;
  double reserved_total_co2_t = 0;
  double usd_run = 0;  // for the GPU-hours of the plan
  double usd = 0;      // for the reserved hours
};

struct Campaign {
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  Seconds step;                      // of the full batch, as measured when that is given
  Seconds predicted_step;            // of the full batch
  std::vector<RampPhase> phases;     // smallest batch first; the last one is the full batch
  std::vector<Seconds> phase_steps;  // time of one step of each phase
  Seconds mtbf;                      // of all nodes together
  CampaignCheckpoints checkpoints;
  CampaignTime time;
  // Wall time at both ends of the 90 % interval of the predicted step; both are the wall time
  // itself for a measured step.
  Seconds wall_low;
  Seconds wall_high;
  Replays unlimited;  // failures as the closed form has them: a spare node is always there
  Replays replays;    // with spare_nodes
  std::int64_t spare_nodes = 0;
  std::string spare_nodes_source;
  std::int64_t spare_nodes_wanted = 0;  // enough at 99 of 100 moments
  CampaignCost cost;
};

// An error for more spare nodes than are left.
Status check_spare_nodes(std::int64_t spare, const ClusterSpec& cluster, const Plan& plan);

// Fails for a plan or ramp that is illegal, for a run that failures would never let end, and for
// async checkpoints that storage or hosts cannot take. Spare nodes that the assumptions do not
// state (without a source) are chosen; those that they state are capped by the cluster.
Result<Campaign> plan_campaign(const Scenario& scenario, const Plan& plan,
                               const CampaignRequest& request, const Assumptions& assumptions);

// The best plan when some nodes are gone for good.
struct Replanned {
  std::int64_t lost_nodes = 0;
  std::vector<PlannedRun> best;  // one; none when nothing fits
  // The nearest global batch with which a plan that fits uses every GPU left. 0: `best` uses them
  // all, or no batch that was tried allows it.
  std::int64_t whole_batch = 0;
};

// For 1 to `most_lost` nodes. Batch, recompute, attention, schedule, sequence parallelism, rank
// order, offload and dtypes stay the plan's; degrees, ZeRO and micro-batch are free. Because few
// numbers of nodes divide well, every whole number of nodes from those left down to 3/4 of them is
// tried.
Result<std::vector<Replanned>> replan(const Scenario& scenario, const Plan& plan,
                                      std::int64_t most_lost,
                                      const std::function<void(double)>& progress);

}  // namespace tpsim
