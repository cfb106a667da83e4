#include "campaigns/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lowering/passes/step_habits.h"
#include "plans/search/search.h"
#include "sim/step/predict.h"

namespace tpsim {
namespace {

constexpr double kHour = 3600;
constexpr double kNodeShortageRisk = 0.01;

std::int64_t hosts_of(const ClusterSpec& cluster, const Plan& plan) {
  return (gpu_count(plan) + host_size(cluster) - 1) / host_size(cluster);
}

Plan with_batch(Plan plan, std::int64_t global_batch) {
  plan.global_batch = global_batch;
  return plan;
}

Status check_request(const Scenario& scenario, const Plan& plan, const CampaignRequest& request) {
  TPSIM_TRY_STATUS(check_plan(scenario, plan));
  TPSIM_TRY_STATUS(validate(request.ramp, plan.global_batch));
  const double samples = request.tokens / static_cast<double>(scenario.model.seq);
  if (!(samples >= 1 && samples < 1e15)) {
    return bad_input(fmt::format("{} tokens are too few for a campaign", request.tokens),
                     "--tokens", fmt::format("one sequence has {} tokens", scenario.model.seq));
  }
  return Ok{};
}

// Fills the phases, the times of their steps, and the predicted step with its interval.
Status add_steps(const Scenario& scenario, const Plan& plan, const CampaignRequest& request,
                 Campaign& campaign) {
  LayerPricer pricer(scenario);
  PlannedRun run{plan, {}};
  TPSIM_TRY(run.predicted, predict(pricer, plan));
  if (request.widen) request.widen(run);
  const Prediction& full = run.predicted;
  campaign.predicted_step = full.step;
  campaign.step = request.step > Seconds() ? request.step : full.step;
  // Measured over predicted step at the full batch; also scales the steps of smaller ramp batches.
  const double scale = campaign.step / full.step;
  const auto samples = static_cast<std::int64_t>(
      std::ceil(request.tokens / static_cast<double>(scenario.model.seq)));
  campaign.phases = ramp_phases(request.ramp, plan.global_batch, samples);
  for (const RampPhase& phase : campaign.phases) {
    const Plan smaller = with_batch(plan, phase.global_batch);
    const Status legal = check_plan(scenario, smaller);
    if (!legal.ok()) {
      Error error = legal.error();
      error.message = fmt::format("the plan is not valid at the ramp's batch of {}: {}",
                                  phase.global_batch, error.message);
      error.where = "--ramp";
      return error;
    }
    Seconds step = full.step;
    if (phase.global_batch != plan.global_batch) {
      TPSIM_TRY(const Prediction other, predict(pricer, smaller));
      step = other.step;
    }
    campaign.phase_steps.push_back(step * scale);
    campaign.time.steps += static_cast<double>(phase.steps) * campaign.phase_steps.back();
  }
  const bool predicted = request.step <= Seconds();
  campaign.wall_low = predicted ? campaign.time.steps * (full.step_low / full.step) : Seconds();
  campaign.wall_high = predicted ? campaign.time.steps * (full.step_high / full.step) : Seconds();
  return Ok{};
}

// Each GPU copies its part of the checkpoint to its host. The data-parallel ranks split the
// checkpoint with ZeRO; otherwise one data-parallel replica copies all of it. The GPUs of a host
// copy concurrently over separate links.
Seconds copy_to_hosts(Bytes size, const Plan& plan, const HostSpec& host) {
  const std::int64_t parts = gpu_count(plan) / (plan.zero == 0 ? plan.degrees.dp : 1);
  return size / static_cast<double>(parts) / (host.link * host.link_efficiency);
}

// Error if hosts cannot store an async checkpoint, or if its write outlasts the interval.
Status check_async(const CampaignCheckpoints& checkpoints, const HostSpec& host,
                   std::int64_t hosts) {
  const Bytes share = checkpoints.size / static_cast<double>(hosts);
  if (share > host.memory) {
    return Error{ErrorKind::kDoesNotFit,
                 fmt::format("an async checkpoint needs {} of memory on each host; a host has {}",
                             to_string(share), to_string(host.memory)),
                 "--checkpoint", "use --checkpoint sync"};
  }
  if (checkpoints.interval + checkpoints.stop < checkpoints.write) {
    return bad_input(fmt::format("async checkpoints start every {}, but one takes {} to write",
                                 to_string(checkpoints.interval + checkpoints.stop),
                                 to_string(checkpoints.write)),
                     "--checkpoint-every", "use a longer interval or a higher --storage-bandwidth");
  }
  return Ok{};
}

Status add_checkpoints(const Scenario& scenario, const Plan& plan, const CampaignRequest& request,
                       const Assumptions& assumed, Campaign& campaign) {
  CampaignCheckpoints& checkpoints = campaign.checkpoints;
  const HostSpec& host = scenario.cluster.host;
  const bool async = request.checkpoints == CheckpointKind::kAsync;
  checkpoints.size = checkpoint_size(scenario.model, plan, scenario.stack);
  checkpoints.write =
      checkpoints.size / BytesPerSecond(assumed[Assumption::kStorageBandwidth] * kGB);
  checkpoints.stop = checkpoints.write;
  if (async) {
    checkpoints.stop = std::min(copy_to_hosts(checkpoints.size, plan, host), checkpoints.write);
  }
  // Shortest interval at which a checkpoint is written before the next one starts.
  const Seconds least = checkpoints.write - checkpoints.stop;
  checkpoints.best = std::max(best_interval(checkpoints.stop, campaign.mtbf), least);
  checkpoints.young = young_interval(checkpoints.stop, campaign.mtbf);
  checkpoints.daly = daly_interval(checkpoints.stop, campaign.mtbf);
  const Seconds wanted =
      request.checkpoint_interval > Seconds() ? request.checkpoint_interval : checkpoints.best;
  // The interval is at least one step and at most the whole run.
  checkpoints.interval =
      std::max(std::min(wanted, campaign.time.steps), std::min(campaign.step, campaign.time.steps));
  checkpoints.steps = std::max<std::int64_t>(1, std::llround(checkpoints.interval / campaign.step));
  const bool only_one = checkpoints.interval >= campaign.time.steps;
  return async && !only_one ? check_async(checkpoints, host, campaign.nodes) : Status(Ok{});
}

FailureModel failure_model(const Campaign& campaign, const Assumptions& assumed) {
  FailureModel model;
  model.work = campaign.time.steps;
  model.interval = campaign.checkpoints.interval;
  model.write = campaign.checkpoints.stop;
  model.behind = campaign.checkpoints.write - campaign.checkpoints.stop;
  model.restart = Seconds(assumed[Assumption::kRestartTime] * 60);
  model.mtbf = campaign.mtbf;
  return model;
}

// Error if failures make the run more than 100 times longer, or if the replays would simulate too
// many failures.
Status check_failures(const FailureModel& model, const CampaignRequest& request) {
  constexpr double kMostSlowdown = 100;
  constexpr double kMostFailures = 1e8;  // sum over all replays; takes several seconds
  if (!can_end(model) || expected_wall(model) > kMostSlowdown * model.work) {
    return Error{
        ErrorKind::kDoesNotFit,
        fmt::format("the run makes almost no progress: checkpoints are {} apart, a restart takes "
                    "{}, and a node fails every {}",
                    to_string(model.interval + model.write), to_string(model.restart),
                    to_string(model.mtbf)),
        "", "write checkpoints faster or more often, restart faster, or use more reliable nodes"};
  }
  const double failures = expected_wall(model) / model.mtbf;
  if (failures * static_cast<double>(request.replays) > kMostFailures) {
    return bad_input(
        fmt::format("{} replays with about {:.0f} failures each take too long", request.replays,
                    failures),
        "--replays",
        fmt::format("give --replays {:.0f} or less", std::max(2.0, kMostFailures / failures)));
  }
  return Ok{};
}

// Returns the number of hosts in each node that the job leaves free, such as 2 of the 18 trays of
// an NVL72 rack. 0 if the plan uses a single node.
std::int64_t free_hosts_per_node(const ClusterSpec& cluster, const Plan& plan) {
  const std::int64_t node = node_size(cluster, gpu_count(plan));
  return nodes_of(cluster, plan) > 1 ? (cluster.gpus_per_node - node) / host_size(cluster) : 0;
}

// Returns the number of the cluster's hosts that the plan does not use.
std::int64_t hosts_left(const ClusterSpec& cluster, const Plan& plan) {
  const std::int64_t used = nodes_of(cluster, plan);
  const std::int64_t left = std::max<std::int64_t>(0, cluster.nodes - used);
  return left * (cluster.gpus_per_node / host_size(cluster)) +
         used * free_hosts_per_node(cluster, plan);
}

// Returns the number of spare nodes with the lowest cost. For SparesFor::kTime, returns the
// smallest number with which the run spends less than 0.1 % of its time waiting. Tries 0, 1, ...
// and stops after three numbers without lower cost: the cost falls while nodes are short, then
// rises.
std::int64_t best_spare_nodes(const Campaign& campaign, const FailureModel& model, Seconds repair,
                              const CampaignRequest& request, std::int64_t most) {
  constexpr std::int64_t kPlayed = 300;  // replays per number of nodes, enough to compare costs
  constexpr double kHardlyEver = 1e-3;   // waiting time as a share of wall time
  constexpr std::int64_t kPatience = 3;
  const std::int64_t played = std::min(request.replays, kPlayed);
  std::int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t spare = 0; spare <= most && spare <= best + kPatience; ++spare) {
    const Replays replays = replay_campaigns(model, {spare, repair}, played, request.seed);
    const Seconds wall = expected_wall(model) + replays.waiting;
    const bool by_time = request.spares_for == SparesFor::kTime;
    if (by_time && replays.waiting < kHardlyEver * wall) return spare;
    // For kTime, each further spare node lowers the cost, so the loop ends at the return above.
    const double cost = by_time ? -static_cast<double>(spare)
                                : wall.value() * static_cast<double>(campaign.nodes + spare);
    if (cost < least) {
      least = cost;
      best = spare;
    }
  }
  return best;
}

// Sets the number of spare nodes: the stated one, or a chosen one. Never exceeds the unused nodes.
void settle_spare_nodes(const ClusterSpec& cluster, const Plan& plan, const FailureModel& model,
                        Seconds repair, const CampaignRequest& request, const Assumptions& assumed,
                        Campaign& campaign) {
  const std::int64_t left = hosts_left(cluster, plan);
  const std::int64_t own = free_hosts_per_node(cluster, plan);
  const AssumedValue& stated = assumed.values[static_cast<std::size_t>(Assumption::kSpareNodes)];
  campaign.spare_nodes = static_cast<std::int64_t>(stated.value);
  campaign.spare_nodes_source = stated.source;
  if (stated.source.empty() && own > 0) {
    campaign.spare_nodes = own * nodes_of(cluster, plan);
    campaign.spare_nodes_source =
        fmt::format("hosts of {} GPUs that the job leaves free: {} in each of its {} nodes",
                    host_size(cluster), own, nodes_of(cluster, plan));
    return;
  }
  if (stated.source.empty()) {
    campaign.spare_nodes = best_spare_nodes(campaign, model, repair, request, left);
    campaign.spare_nodes_source =
        request.spares_for == SparesFor::kTime
            ? "chosen: the smallest number with which the run hardly ever waits"
            : "chosen: lowest cost, including the spare nodes";
  }
  const bool capped = campaign.spare_nodes > left;
  const bool took_all = stated.source.empty() && left > 0 && campaign.spare_nodes == left;
  if (capped || took_all) {
    campaign.spare_nodes = left;
    campaign.spare_nodes_source =
        fmt::format("all nodes of {} that the plan leaves free", cluster.name);
  }
}

Status add_failures(const Scenario& scenario, const Plan& plan, const CampaignRequest& request,
                    const Assumptions& assumed, Campaign& campaign) {
  const FailureModel model = failure_model(campaign, assumed);
  TPSIM_TRY_STATUS(check_failures(model, request));
  const Seconds repair(assumed[Assumption::kRepairTime] * kHour);
  settle_spare_nodes(scenario.cluster, plan, model, repair, request, assumed, campaign);
  const SpareNodes endless{std::numeric_limits<std::int64_t>::max(), repair};
  campaign.unlimited = replay_campaigns(model, endless, request.replays, request.seed);
  campaign.replays =
      replay_campaigns(model, {campaign.spare_nodes, repair}, request.replays, request.seed);
  campaign.spare_nodes_wanted = spare_nodes_for(repair, campaign.mtbf, kNodeShortageRisk);
  campaign.checkpoints.count = checkpoint_count(model);

  CampaignTime& time = campaign.time;
  time.checkpoints = static_cast<double>(campaign.checkpoints.count) * model.write;
  time.failures = expected_wall(model) - time.steps - time.checkpoints;
  time.waiting = campaign.replays.waiting;
  time.downtime = Seconds(assumed[Assumption::kDowntime] * kHour);
  // Returns the wall time if the steps take `steps` in total. All parts except downtime scale with
  // the steps.
  const auto scaled = [&](Seconds steps) {
    return steps > Seconds() ? (time.wall() - time.downtime) * (steps / time.steps) + time.downtime
                             : time.wall();
  };
  campaign.wall_low = scaled(campaign.wall_low);
  campaign.wall_high = scaled(campaign.wall_high);
  return Ok{};
}

CampaignCost cost_of(const Campaign& campaign, std::int64_t gpus_per_host,
                     const Assumptions& assumed) {
  const double hours = campaign.time.wall().value() / kHour;
  const auto spare_gpus = static_cast<double>(campaign.spare_nodes * gpus_per_host);
  CampaignCost cost;
  cost.gpu_hours = hours * static_cast<double>(campaign.gpus);
  cost.reserved_hours = cost.gpu_hours + hours * spare_gpus;
  const double spare_hours = cost.reserved_hours - cost.gpu_hours;
  const double gpu_kw = assumed[Assumption::kGpuPower] / 1000;
  const double other_kw = assumed[Assumption::kOtherPower] / 1000;
  const double pue = assumed[Assumption::kPue];
  cost.gpu_kwh = cost.gpu_hours * gpu_kw;
  cost.total_kwh = (cost.gpu_kwh + cost.gpu_hours * other_kw) * pue;
  cost.reserved_gpu_kwh = cost.gpu_kwh + spare_hours * kIdleDraw * gpu_kw;
  cost.reserved_total_kwh = (cost.reserved_gpu_kwh + cost.reserved_hours * other_kw) * pue;
  const double tonnes_per_kwh = assumed[Assumption::kCarbon] / 1e6;
  cost.gpu_co2_t = cost.gpu_kwh * tonnes_per_kwh;
  cost.total_co2_t = cost.total_kwh * tonnes_per_kwh;
  cost.reserved_gpu_co2_t = cost.reserved_gpu_kwh * tonnes_per_kwh;
  cost.reserved_total_co2_t = cost.reserved_total_kwh * tonnes_per_kwh;
  cost.usd_run = cost.gpu_hours * assumed[Assumption::kPrice];
  cost.usd = cost.reserved_hours * assumed[Assumption::kPrice];
  return cost;
}

}  // namespace

std::int64_t nodes_of(const ClusterSpec& cluster, const Plan& plan) {
  const std::int64_t node = node_size(cluster, gpu_count(plan));
  return (gpu_count(plan) + node - 1) / node;
}

Status check_spare_nodes(std::int64_t spare, const ClusterSpec& cluster, const Plan& plan) {
  const std::int64_t left = hosts_left(cluster, plan);
  if (spare <= left) return Ok{};
  return bad_input(fmt::format("{} spare nodes are too many: the plan leaves {} nodes of {} free",
                               spare, left, cluster.name),
                   "", fmt::format("give a number from 0 to {}", left));
}

Result<Campaign> plan_campaign(const Scenario& scenario, const Plan& plan,
                               const CampaignRequest& request, const Assumptions& assumptions) {
  TPSIM_TRY_STATUS(check_request(scenario, plan, request));
  Campaign campaign;
  campaign.gpus = gpu_count(plan);
  campaign.nodes = hosts_of(scenario.cluster, plan);
  campaign.mtbf =
      Seconds(assumptions[Assumption::kNodeMtbf] * kHour / static_cast<double>(campaign.nodes));
  TPSIM_TRY_STATUS(add_steps(scenario, plan, request, campaign));
  TPSIM_TRY_STATUS(add_checkpoints(scenario, plan, request, assumptions, campaign));
  TPSIM_TRY_STATUS(add_failures(scenario, plan, request, assumptions, campaign));
  campaign.cost = cost_of(campaign, host_size(scenario.cluster), assumptions);
  return campaign;
}

}  // namespace tpsim
