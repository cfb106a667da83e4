// A whole training run: days, GPU-hours, energy and cost from the predicted step.
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

// kSync: training waits until the checkpoint is written. kAsync: until it is copied to host memory.
enum class CheckpointKind : std::uint8_t { kSync, kAsync };
template <>
inline constexpr auto kEnumNames<CheckpointKind> = std::to_array<std::string_view>({"sync",
                                                                                    "async"});

// Objective for the number of spare nodes if it is not stated: lowest cost, or shortest time.
enum class SparesFor : std::uint8_t { kCost, kTime };
template <>
inline constexpr auto kEnumNames<SparesFor> = std::to_array<std::string_view>({"cost", "time"});

// Power of an idle GPU relative to a working one: 50 of 400 W for an A100, 70 of 700 W for an H100.
// An estimate; the rest of an idle node is assumed to draw as much as that of other nodes.
inline constexpr double kIdleDraw = 0.12;

struct CampaignRequest {
  double tokens = 0;
  BatchRamp ramp;
  // Measured step of the full batch; zero: predicted. Smaller batches of a ramp are predicted and
  // scaled by measured / predicted step of the full batch.
  Seconds step;
  Seconds checkpoint_interval;  // work between checkpoints; zero: optimal
  CheckpointKind checkpoints = CheckpointKind::kSync;
  SparesFor spares_for = SparesFor::kCost;
  std::int64_t replays = 2000;
  std::uint64_t seed = 1;
  // Widens the interval of the predicted full batch by unstated inputs
  // (plans/questions/open_inputs.h); may be empty.
  std::function<void(PlannedRun&)> widen = {};
};

struct CampaignCheckpoints {
  Bytes size;
  Seconds write;  // to storage, all ranks together
  Seconds stop;   // pause of training: `write`, or the copy to the hosts for async checkpoints
  Seconds best;   // optimum of the closed form; the next two approximate it
  Seconds young;
  Seconds daly;
  Seconds interval;        // used by the campaign
  std::int64_t steps = 0;  // steps of the full batch nearest to the interval: --save-interval
  std::int64_t count = 0;
};

// Wall time by purpose. The parts add up to wall().
struct CampaignTime {
  Seconds steps;
  Seconds checkpoints;
  Seconds failures;  // expected lost work and restarts
  Seconds waiting;   // for a node if no spare node is left, mean of the replays
  Seconds downtime;
  Seconds wall() const { return steps + checkpoints + failures + waiting + downtime; }
  double goodput() const { return steps / wall(); }
};

struct CampaignCost {
  double gpu_hours = 0;           // GPUs of the plan x wall time
  double reserved_hours = 0;      // including spare nodes
  double gpu_kwh = 0;             // GPUs only
  double total_kwh = 0;           // including the rest of their nodes, times PUE
  double gpu_co2_t = 0;           // of gpu_kwh
  double total_co2_t = 0;         // of total_kwh
  double reserved_gpu_kwh = 0;    // gpu_kwh plus the idle GPUs of spare nodes
  double reserved_total_kwh = 0;  // total_kwh plus the idle spare nodes
  double reserved_gpu_co2_t = 0;
  double reserved_total_co2_t = 0;
  double usd_run = 0;  // for the GPU-hours of the plan
  double usd = 0;      // for the reserved hours
};

struct Campaign {
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  Seconds step;                      // of the full batch, measured if given
  Seconds predicted_step;            // of the full batch
  std::vector<RampPhase> phases;     // smallest batch first, full batch last
  std::vector<Seconds> phase_steps;  // time of one step of each phase
  Seconds mtbf;                      // of all nodes together
  CampaignCheckpoints checkpoints;
  CampaignTime time;
  // Wall time at both ends of the 90 % interval of the predicted step. For a measured step both are
  // the wall time.
  Seconds wall_low;
  Seconds wall_high;
  Replays unlimited;  // failures with unlimited spare nodes, as in the closed form
  Replays replays;    // with spare_nodes
  std::int64_t spare_nodes = 0;
  std::string spare_nodes_source;
  std::int64_t spare_nodes_wanted = 0;  // number that suffices 99 % of the time
  CampaignCost cost;
};

// Error if there are more spare nodes than unused nodes.
Status check_spare_nodes(std::int64_t spare, const ClusterSpec& cluster, const Plan& plan);

// Plans the campaign. Error for an illegal plan or ramp, for a run that failures prevent from
// ending, and for async checkpoints that exceed storage or host memory. If the assumptions have no
// spare nodes (no source), their number is chosen. A stated number is capped by the cluster.
Result<Campaign> plan_campaign(const Scenario& scenario, const Plan& plan,
                               const CampaignRequest& request, const Assumptions& assumptions);

// The best plan after a permanent loss of nodes.
struct Replanned {
  std::int64_t lost_nodes = 0;
  std::vector<PlannedRun> best;  // one plan; empty if none fits
  // The nearest global batch with which a fitting plan uses all remaining GPUs. 0: `best` uses all
  // of them, or no tried batch allows it.
  std::int64_t whole_batch = 0;
};

// Replans for 1 to `most_lost` lost nodes. Batch, recompute, attention, schedule, sequence
// parallelism, rank order, offload and dtypes are those of the plan; degrees, ZeRO and micro-batch
// are free. Few node counts divide well, so every count from the remaining nodes down to 3/4 of
// them is tried.
Result<std::vector<Replanned>> replan(const Scenario& scenario, const Plan& plan,
                                      std::int64_t most_lost,
                                      const std::function<void(double)>& progress);

}  // namespace tpsim
