// A whole training run: days, GPU-hours, energy and cost from the predicted step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
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

// Training pauses until the checkpoint is written to storage (kSync), or until it is copied to host
// memory (kAsync).
enum class CheckpointKind : std::uint8_t { kSync, kAsync };
template <>
inline constexpr auto kEnumNames<CheckpointKind> = words<2>("sync async");

// Criterion by which tpsim chooses the number of spare nodes: lowest cost, or shortest wall time.
enum class SparesFor : std::uint8_t { kCost, kTime };
template <>
inline constexpr auto kEnumNames<SparesFor> = words<2>("cost time");

// Power of an idle GPU relative to its full power: 50 of 400 W for an A100, 70 of 700 W for an
// H100. An estimate. The rest of an idle node is assumed to draw as much as in a busy node.
inline constexpr double kIdleDraw = 0.12;

struct CampaignRequest {
  double tokens = 0;
  BatchRamp ramp;
  // Measured step time at the full batch; zero: use the prediction. The predicted steps of smaller
  // ramp batches are scaled by measured / predicted at the full batch.
  Seconds step;
  Seconds checkpoint_interval;  // work between checkpoints; zero: optimal
  CheckpointKind checkpoints = CheckpointKind::kSync;
  SparesFor spares_for = SparesFor::kCost;
  std::int64_t replays = 2000;
  std::uint64_t seed = 1;
  // Widens the 90 % interval of the predicted full-batch step for inputs that the user did not
  // state (plans/questions/open_inputs.h). May be empty.
  std::function<void(PlannedRun&)> widen = {};
};

struct CampaignCheckpoints {
  Bytes size;
  Seconds write;  // time to write it to storage, all ranks together
  Seconds stop;   // pause of training: `write`, or the copy to the hosts for async checkpoints
  Seconds best;   // optimal interval in closed form; `young` and `daly` approximate it
  Seconds young;
  Seconds daly;
  Seconds interval;        // interval that the campaign uses
  std::int64_t steps = 0;  // full-batch steps nearest to `interval`: the value of --save-interval
  std::int64_t count = 0;
};

// Wall time by purpose. The parts add up to wall().
struct CampaignTime {
  Seconds steps;
  Seconds checkpoints;
  Seconds failures;  // expected lost work and restarts
  Seconds waiting;   // time without enough nodes when spare nodes run out, mean of the replays
  Seconds downtime;
  Seconds wall() const { return steps + checkpoints + failures + waiting + downtime; }
  double goodput() const { return steps / wall(); }
};

struct CampaignCost {
  double gpu_hours = 0;           // GPUs of the plan x wall time
  double reserved_hours = 0;      // including spare nodes
  double gpu_kwh = 0;             // GPUs only
  double total_kwh = 0;           // including the rest of their nodes, times PUE
  double gpu_co2_t = 0;           // CO2 of gpu_kwh in tonnes
  double total_co2_t = 0;         // CO2 of total_kwh in tonnes
  double reserved_gpu_kwh = 0;    // gpu_kwh plus the idle GPUs of spare nodes
  double reserved_total_kwh = 0;  // total_kwh plus the idle spare nodes
  double reserved_gpu_co2_t = 0;
  double reserved_total_co2_t = 0;
  double usd_run = 0;  // price of gpu_hours
  double usd = 0;      // price of reserved_hours
};

struct Campaign {
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  Seconds step;                      // step at the full batch: measured if given, else predicted
  Seconds predicted_step;            // predicted step at the full batch
  std::vector<RampPhase> phases;     // smallest batch first, full batch last
  std::vector<Seconds> phase_steps;  // time of one step of each phase
  Seconds mtbf;                      // mean time between failures of any of the run's nodes
  CampaignCheckpoints checkpoints;
  CampaignTime time;
  // Wall time at both ends of the 90 % interval of the predicted step. For a measured step both are
  // the wall time.
  Seconds wall_low;
  Seconds wall_high;
  Replays unlimited;  // replays with unlimited spare nodes, comparable with the closed form
  Replays replays;    // replays with `spare_nodes` spare nodes
  std::int64_t spare_nodes = 0;
  std::string spare_nodes_source;
  std::int64_t spare_nodes_wanted = 0;  // spare nodes that suffice 99 % of the time
  CampaignCost cost;

  // Returns the price with spare nodes of a run that takes `wall`.
  double usd_of(Seconds wall) const { return cost.usd * (wall / time.wall()); }
};

// Error if `spare` exceeds the number of nodes that the plan leaves unused.
Status check_spare_nodes(std::int64_t spare, const ClusterSpec& cluster, const Plan& plan);

// Plans the campaign. Error if the plan or the ramp is illegal, if failures keep the run from
// ending, or if async checkpoints exceed storage bandwidth or host memory. Chooses the number of
// spare nodes if the assumptions do not state one. The cluster's unused nodes limit a stated
// number.
Result<Campaign> plan_campaign(const Scenario& scenario, const Plan& plan,
                               const CampaignRequest& request, const Assumptions& assumptions);

// Returns the number of nodes that the plan's GPUs occupy.
std::int64_t nodes_of(const ClusterSpec& cluster, const Plan& plan);

// The plan with the most tokens/s after a permanent loss of nodes.
struct Replanned {
  std::int64_t lost_nodes = 0;
  std::optional<PlannedRun> best;  // empty if no plan fits
};

// Finds the plan with the most tokens/s after a loss of 1 to `most_lost` nodes, with the search of
// space_around(). A plan may leave nodes idle: all node counts are tried from the remaining nodes
// down to 3/4 of the nodes that remain after `most_lost`, except those on which a GPU would have to
// be over 2 % faster than in the plans so far. The global batch is that of the plan, or
// the near one that the GPUs divide (divisible_batch()). Tokens/s never rise with more lost nodes.
Result<std::vector<Replanned>> replan(const Scenario& scenario, const Plan& plan,
                                      std::int64_t most_lost,
                                      const std::function<void(double)>& progress);

}  // namespace tpsim
