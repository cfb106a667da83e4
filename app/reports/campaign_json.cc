#include "app/reports/campaign_json.h"

#include "app/reports/report_json.h"
#include "core/scenario/plan_json.h"

namespace tpsim::app {
namespace {

double days(Seconds time) { return time.value() / (24 * 3600); }
double hours(Seconds time) { return time.value() / 3600; }

JsonValue replays_json(const Replays& replays) {
  return json_object({{"campaigns", replays.campaigns},
                      {"mean_days", days(replays.mean)},
                      {"standard_error_days", days(replays.standard_error)},
                      {"p5_days", days(replays.low)},
                      {"median_days", days(replays.median)},
                      {"p95_days", days(replays.high)},
                      {"failures", replays.failures},
                      {"lost_h", hours(replays.lost)},
                      {"waiting_h", hours(replays.waiting)}});
}

JsonValue checkpoints_json(const CampaignCheckpoints& c) {
  return json_object({{"bytes", c.size.value()},
                      {"write_s", c.write.value()},
                      {"stop_s", c.stop.value()},
                      {"interval_s", c.interval.value()},
                      {"interval_steps", c.steps},
                      {"best_s", c.best.value()},
                      {"young_s", c.young.value()},
                      {"daly_s", c.daly.value()},
                      {"count", c.count}});
}

JsonValue time_json(const Campaign& campaign) {
  const CampaignTime& time = campaign.time;
  return json_object({{"wall_days", days(time.wall())},
                      {"wall_days_low", days(campaign.wall_low)},
                      {"wall_days_high", days(campaign.wall_high)},
                      {"goodput", time.goodput()},
                      {"steps_days", days(time.steps)},
                      {"checkpoints_days", days(time.checkpoints)},
                      {"failures_days", days(time.failures)},
                      {"waiting_days", days(time.waiting)},
                      {"downtime_days", days(time.downtime)}});
}

JsonValue cost_json(const Campaign& campaign) {
  const CampaignCost& cost = campaign.cost;
  return json_object({{"gpu_hours", cost.gpu_hours},
                      {"reserved_gpu_hours", cost.reserved_hours},
                      {"gpu_kwh", cost.gpu_kwh},
                      {"total_kwh", cost.total_kwh},
                      {"gpu_co2_t", cost.gpu_co2_t},
                      {"total_co2_t", cost.total_co2_t},
                      {"reserved_gpu_kwh", cost.reserved_gpu_kwh},
                      {"reserved_total_kwh", cost.reserved_total_kwh},
                      {"reserved_gpu_co2_t", cost.reserved_gpu_co2_t},
                      {"reserved_total_co2_t", cost.reserved_total_co2_t},
                      {"usd_run", cost.usd_run},
                      {"usd", cost.usd},
                      {"usd_low", campaign.usd_of(campaign.wall_low)},
                      {"usd_high", campaign.usd_of(campaign.wall_high)}});
}

JsonValue replanned_json(const Replanned& row) {
  JsonValue json = json_object({{"lost_nodes", row.lost_nodes}, {"fits", row.best.has_value()}});
  if (!row.best) return json;
  const PlannedRun& run = *row.best;
  json.set("gpus", gpu_count(run.plan));
  json.set("plan", plan_to_json(run.plan));
  json.set("step_s", run.predicted.step.value());
  json.set("tokens_per_s", run.predicted.tokens_per_s);
  return json.set("peak_gib", run.predicted.peak.value() / kGiB);
}

JsonValue assumptions_json(const CampaignReport& report) {
  JsonValue json = json_object();
  for (const ShownAssumption& row : shown_assumptions(report)) {
    json.set(row.key, json_object({{"value", row.value}, {"source", row.source}}));
  }
  return json;
}

JsonValue size_json(const GoalSize& size) {
  JsonValue json = json_object({{"gpus", size.gpus}});
  if (!size.campaign) return json.set("none", size.why_none), json;
  const Campaign& campaign = *size.campaign;
  json.set("plan", plan_to_json(size.best->plan));
  json.set("step_s", campaign.step.value());
  json.set("spare_nodes", campaign.spare_nodes);
  json.set("checkpoint_interval_s", campaign.checkpoints.interval.value());
  json.set("wall_days", days(campaign.time.wall()));
  json.set("wall_days_low", days(campaign.wall_low));
  json.set("wall_days_high", days(campaign.wall_high));
  json.set("reserved_gpu_hours", campaign.cost.reserved_hours);
  json.set("usd", campaign.cost.usd);
  json.set("standing", name_of(size.standing));
  return json;
}

JsonValue goal_json(const GoalReport& report) {
  JsonValue json = json_object();
  if (report.goal.deadline > Seconds()) {
    json.set("deadline_days", days(report.goal.deadline));
  }
  if (report.goal.budget > 0) json.set("budget_usd", report.goal.budget);
  json.set("standing", name_of(report.standing));
  json.set("sizes", json_array(report.answer.sizes, size_json));
  return json;
}

}  // namespace

JsonValue campaign_json(const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  JsonValue json = json_object({
      {"version", "tpsim-campaign-report/1"},
      {"model", report.named.scenario.model.name},
      {"cluster", report.named.cluster},
      {"gpus", campaign.gpus},
      {"nodes", campaign.nodes},
      {"plan", plan_to_json(report.plan)},
      {"tokens", report.request.tokens},
      {"step_s", campaign.step.value()},
      {"predicted_step_s", campaign.predicted_step.value()},
      {"node_failure_every_s", campaign.mtbf.value()},
      {"spare_nodes", campaign.spare_nodes},
      {"spare_nodes_wanted", campaign.spare_nodes_wanted},
      {"time", time_json(campaign)},
      {"cost", cost_json(campaign)},
      {"checkpoints", checkpoints_json(campaign.checkpoints)},
      {"replays_with_unlimited_spares", replays_json(campaign.unlimited)},
      {"replays", replays_json(campaign.replays)},
      {"replanned", json_array(report.replanned, replanned_json)},
      {"assumptions", assumptions_json(report)},
  });
  JsonValue phases = JsonValue::Array{};
  for (std::size_t i = 0; i < campaign.phases.size(); ++i) {
    phases.push(json_object({{"global_batch", campaign.phases[i].global_batch},
                             {"steps", campaign.phases[i].steps},
                             {"step_s", campaign.phase_steps[i].value()}}));
  }
  json.set("phases", std::move(phases));
  if (report.goal) json.set("goal", goal_json(*report.goal));
  add_assumed(json, report.named.assumed);
  return json;
}

}  // namespace tpsim::app
