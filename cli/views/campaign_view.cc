// The report of `campaign` as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

// Returns the name of the unit that fails and is replaced: a host of an NVLink rack, else a node.
const char* unit_name(const CampaignReport& report) {
  const ClusterSpec& cluster = report.named.scenario.cluster;
  return host_size(cluster) == cluster.gpus_per_node ? "node" : "host";
}

// Ratio of the time between checkpoints to their writing time below which the storage always works.
constexpr double kBusyStorage = 1.05;

// Unit of the times of a run: hours below two days.
struct RunScale {
  const char* unit;
  double seconds;
  double operator()(Seconds time) const { return time.value() / seconds; }
};
RunScale run_scale(Seconds longest) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  return longest.value() < 2 * kDay ? RunScale{"h", kHour} : RunScale{"days", kDay};
}

std::string large_text(double number) { return count_text(std::llround(number)); }

std::string energy_text(double kwh) {
  return kwh < 1e4 ? fmt::format("{:.1f} kWh", kwh) : fmt::format("{:.1f} MWh", kwh / 1e3);
}

std::string mass_text(double tonnes) {
  return tonnes < 1 ? fmt::format("{:.1f} kg", tonnes * 1e3) : fmt::format("{:.1f} t", tonnes);
}

Label label(std::string_view text) { return {text, 14}; }

void write_bill(TextReport& out, const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  const std::string spare = fmt::format("spare {}s", unit_name(report));
  const CampaignCost& cost = campaign.cost;
  const RunScale scale = run_scale(campaign.time.wall());
  std::string interval;
  if (campaign.wall_high > campaign.wall_low) {
    interval = fmt::format(" (90 % interval of the step: {:.1f} to {:.1f})",
                           scale(campaign.wall_low), scale(campaign.wall_high));
  }
  out.row(label("time"), "{}{}, goodput {}",
          out.bold(fmt::format("{:.1f} {}", scale(campaign.time.wall()), scale.unit)), interval,
          percent_text(campaign.time.goodput()));
  out.row(label("GPU-hours"), "{} on {} GPUs; {} with {}", out.bold(large_text(cost.gpu_hours)),
          count_text(campaign.gpus), large_text(cost.reserved_hours), spare);
  out.row(label("energy"), "{} of the GPUs alone, {} in total; {} with {}",
          out.bold(energy_text(cost.gpu_kwh)), energy_text(cost.total_kwh),
          energy_text(cost.reserved_total_kwh), spare);
  out.row(label("CO2"), "{} of the GPUs alone, {} in total; {} with {}", mass_text(cost.gpu_co2_t),
          mass_text(cost.total_co2_t), mass_text(cost.reserved_total_co2_t), spare);
  const std::string price =
      assumption_text(row_of(Assumption::kPrice), report.assumptions[Assumption::kPrice]);
  std::string range;
  if (!interval.empty()) {
    range = fmt::format(" ({} to {})", large_text(campaign.usd_of(campaign.wall_low)),
                        large_text(campaign.usd_of(campaign.wall_high)));
  }
  out.row(label("money"), "{} USD at {} a GPU; {}{} with {}", out.bold(large_text(cost.usd_run)),
          price, large_text(cost.usd), range,
          counted_text(campaign.spare_nodes, "spare " + std::string(unit_name(report))));
}

void write_times(TextReport& out, const CampaignReport& report) {
  const CampaignTime& time = report.campaign.time;
  const CheckpointKind kind = report.request.checkpoints;
  const RunScale scale = run_scale(time.wall());
  Table table(columns_of(fmt::format("<|{}|share|<", scale.unit)));
  const auto add = [&](const char* name, Seconds part, const std::string& note) {
    table.add_row({name, fmt::format("{:.2f}", scale(part)),
                   Cell(percent_text(part / time.wall()), Ink::kDim), Cell(note, Ink::kDim)});
  };
  add("training steps", time.steps, "");
  add("writing checkpoints", time.checkpoints,
      kind == CheckpointKind::kSync ? "training waits for storage"
                                    : "copied to the hosts, written while training continues");
  add("failures", time.failures, "expected lost work and restarts");
  add("waiting for repair", time.waiting,
      fmt::format("while no spare {} is left", unit_name(report)));
  add("downtime", time.downtime, "as assumed below");
  out.table(table);
}

void write_steps(TextReport& out, const Campaign& campaign, const CampaignRequest& request) {
  std::int64_t steps = 0;
  for (const RampPhase& phase : campaign.phases) steps += phase.steps;
  out.row(label("steps"), "{} steps of {} ({})", count_text(steps), time_text(campaign.step),
          request.step > Seconds() ? "measured, given with --step-time" : "predicted");
  if (campaign.phases.size() < 2) return;
  Seconds ramp;
  for (std::size_t i = 0; i + 1 < campaign.phases.size(); ++i) {
    ramp += static_cast<double>(campaign.phases[i].steps) * campaign.phase_steps[i];
  }
  out.row(label("batch ramp"),
          "{} smaller batch sizes first, from {} sequences ({} per step); {} in total",
          campaign.phases.size() - 1, campaign.phases.front().global_batch,
          time_text(campaign.phase_steps.front()), duration_text(ramp));
}

void write_failures(TextReport& out, const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  const std::string unit = unit_name(report);
  const CampaignCheckpoints& c = campaign.checkpoints;
  const Replays& r = campaign.replays;
  const Replays& unlimited = campaign.unlimited;
  const Seconds expected = campaign.time.steps + campaign.time.checkpoints + campaign.time.failures;
  const bool keeps_working = c.stop < c.write;
  const RunScale scale = run_scale(campaign.time.wall());
  out.prose_row(
      label("checkpoint"),
      fmt::format("{} each, written in {}{}; {} in the run, one per {} of work ({} full steps){}",
                  to_string(c.size), duration_text(c.write),
                  keeps_working ? ", stopping the run for " + time_text(c.stop) : "",
                  count_text(c.count), duration_text(c.interval), count_text(c.steps),
                  keeps_working && c.interval <= kBusyStorage * c.write
                      ? "; the storage is busy all the time"
                      : ""));
  out.row(label("best interval"), "{}; {} by Daly's formula, {} by Young's", duration_text(c.best),
          duration_text(c.daly), duration_text(c.young));
  out.row(label(fmt::format("a {} fails", unit)), "every {}; {:.1f} times in the run",
          duration_text(campaign.mtbf), r.failures);
  out.row(label("closed form"),
          "{0:.2f} {4}; mean of {1} simulated runs: {2:.2f} +- {3:.2f} {4} (95 %)", scale(expected),
          count_text(unlimited.campaigns), scale(unlimited.mean),
          scale(1.96 * unlimited.standard_error), scale.unit);
  out.row(label("simulated"), "median {:.1f} {}; 90 % of the simulated runs take {:.1f} to {:.1f}",
          scale(r.median), scale.unit, scale(r.low), scale(r.high));
  out.row(label(fmt::format("spare {}s", unit)), "{}; with {}, the run lacks a {} 1 % of the time",
          campaign.spare_nodes, campaign.spare_nodes_wanted, unit);
}

void write_replans(TextReport& out, const CampaignReport& report) {
  Table table(columns_of("lost|GPUs|<plan|batch|step|tokens/s|slower|GiB"));
  for (const Replanned& row : report.replanned) {
    if (!row.best) {
      table.add_row({std::to_string(row.lost_nodes), "-", "no plan fits", "-", "-", "-", "-", "-"});
      continue;
    }
    const auto& [plan, predicted] = *row.best;
    // Compare with the prediction of the original plan, because its measured step does not apply to
    // other plans.
    const double own =
        static_cast<double>(report.plan.global_batch * report.named.scenario.model.seq) /
        report.campaign.predicted_step.value();
    table.add_row({std::to_string(row.lost_nodes), std::to_string(gpu_count(plan)),
                   short_name(plan), count_text(plan.global_batch), time_text(predicted.step),
                   count_text(std::llround(predicted.tokens_per_s)),
                   percent_text(own / predicted.tokens_per_s - 1), gib_text(predicted.peak)});
  }
  out.table(table);
}

void write_assumptions(TextReport& out, const CampaignReport& report) {
  constexpr std::size_t kIndent = 34;
  for (const ShownAssumption& row : shown_assumptions(report)) {
    const std::string source =
        wrapped(printable(row.source), out.terminal().room(kIndent, TextReport::kColumns - kIndent),
                kIndent);
    out.line("  {:<18} {:>10}   {}", row.key, row.value, out.paint(source, Ink::kDim));
  }
}

const char* standing_text(GoalStanding standing) {
  switch (standing) {
    case GoalStanding::kSure: return "met";
    case GoalStanding::kAsPredicted:
      return "met at the predicted step, not at the slow end of the interval";
    case GoalStanding::kMissed: return "missed";
  }
  return "?";
}

void write_sizes(TextReport& out, const GoalAnswer& answer) {
  Seconds longest;
  for (const GoalSize& size : answer.sizes) {
    if (size.campaign) longest = std::max(longest, size.campaign->time.wall());
  }
  const RunScale scale = run_scale(longest);
  const auto text = [&](Seconds time) { return fmt::format("{:.1f}", scale(time)); };
  Table table(columns_of(fmt::format("|GPUs|spare|{}|90 % interval|USD|<plan|<goal", scale.unit)));
  for (std::size_t i = 0; i < answer.sizes.size(); ++i) {
    const GoalSize& size = answer.sizes[i];
    const bool chosen = answer.chosen == i;
    if (!size.campaign) {
      table.add_row({"", count_text(size.gpus), "-", "-", "-", "-", printable(size.why_none), ""});
      continue;
    }
    const Campaign& campaign = *size.campaign;
    table.add_row({chosen ? ">" : "", count_text(size.gpus), count_text(campaign.spare_nodes),
                   text(campaign.time.wall()),
                   fmt::format("{}-{}", text(campaign.wall_low), text(campaign.wall_high)),
                   count_text(std::llround(campaign.cost.usd)), short_name(size.best->plan),
                   Cell(standing_text(size.standing),
                        size.standing == GoalStanding::kMissed ? Ink::kDim : Ink::kPlain)});
  }
  out.table(table);
}

// Writes the goal and the numbers of GPUs that were tried for it.
void write_goal(TextReport& out, const GoalReport& report) {
  const bool one = report.answer.sizes.empty();
  const char* rule = report.goal.deadline > Seconds()
                         ? "the cheapest number of GPUs that meets the goal"
                         : "the number of GPUs that meets the goal soonest";
  out.heading("GOAL",
              fmt::format("{}: {}{}", goal_text(report.goal), standing_text(report.standing),
                          one ? "" : fmt::format("; > marks {}", rule)));
  if (!one) write_sizes(out, report.answer);
}

}  // namespace

void write_campaign(TextReport& out, const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  write_scenario(out, report.named, report.plan);
  out.heading("CAMPAIGN", fmt::format("{} tokens on {}", large_text(report.request.tokens),
                                      counted_text(campaign.nodes, unit_name(report))));
  out.row(label("plan"), "{}", short_name(report.plan));
  write_steps(out, campaign, report.request);
  write_bill(out, report);
  write_assumed(out, report.named);
  if (report.goal) write_goal(out, *report.goal);
  out.heading("WHERE THE TIME GOES");
  write_times(out, report);
  out.heading("FAILURES AND CHECKPOINTS");
  write_failures(out, report);
  if (!report.replanned.empty()) {
    out.heading("WITH NODES LOST FOR GOOD",
                unit_name(report) == std::string_view("node")
                    ? "best plan on the remaining nodes"
                    : "best plan on the remaining nodes; a lost node is a whole rack");
    write_replans(out, report);
  }
  out.heading("ASSUMED", "from " + printable(report.assumptions.name));
  write_assumptions(out, report);
}

}  // namespace tpsim::cli
