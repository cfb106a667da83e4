#include "cli/views/campaign_view.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"
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

double days(Seconds time) { return time.value() / (24 * 3600); }

std::string large_text(double number) { return count_text(std::llround(number)); }

std::string energy_text(double kwh) {
  return kwh < 1e4 ? fmt::format("{:.1f} kWh", kwh) : fmt::format("{:.1f} MWh", kwh / 1e3);
}

std::string mass_text(double tonnes) {
  return tonnes < 1 ? fmt::format("{:.1f} kg", tonnes * 1e3) : fmt::format("{:.1f} t", tonnes);
}

template <class... Values>
std::string campaign_row(const Terminal& terminal, const char* label,
                         fmt::format_string<const Values&...> text, const Values&... values) {
  return fmt::format("  {}{}\n", terminal.paint(fmt::format("{:<14}", label), Ink::kDim),
                     fmt::format(text, values...));
}

std::string bill_view(const Terminal& terminal, const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  const std::string spare = fmt::format("spare {}s", unit_name(report));
  const CampaignCost& cost = campaign.cost;
  const Seconds wall = campaign.time.wall();
  std::string interval;
  if (campaign.wall_high > campaign.wall_low) {
    interval = fmt::format(" (90 % interval of the step: {:.1f} to {:.1f})",
                           days(campaign.wall_low), days(campaign.wall_high));
  }
  std::string text =
      campaign_row(terminal, "time", "{}",
                   terminal.paint(fmt::format("{:.1f} days", days(wall)), Ink::kBold) + interval +
                       fmt::format(", goodput {}", percent_text(campaign.time.goodput())));
  text += campaign_row(terminal, "GPU-hours", "{} on {} GPUs; {} with {}",
                       terminal.paint(large_text(cost.gpu_hours), Ink::kBold),
                       count_text(campaign.gpus), large_text(cost.reserved_hours), spare);
  text += campaign_row(terminal, "energy", "{} of the GPUs alone, {} in total; {} with {}",
                       terminal.paint(energy_text(cost.gpu_kwh), Ink::kBold),
                       energy_text(cost.total_kwh), energy_text(cost.reserved_total_kwh), spare);
  text += campaign_row(terminal, "CO2", "{} of the GPUs alone, {} in total; {} with {}",
                       mass_text(cost.gpu_co2_t), mass_text(cost.total_co2_t),
                       mass_text(cost.reserved_total_co2_t), spare);
  return text + campaign_row(terminal, "money", "{} USD; {} with {}",
                             terminal.paint(large_text(cost.usd_run), Ink::kBold),
                             large_text(cost.usd), spare);
}

std::string time_view(const Terminal& terminal, const CampaignReport& report) {
  const CampaignTime& time = report.campaign.time;
  const CheckpointKind kind = report.request.checkpoints;
  Table table({{"", Align::kLeft}, {"days"}, {"share"}, {"", Align::kLeft}});
  const auto add = [&](const char* name, Seconds part, const std::string& note) {
    table.add_row({name, fmt::format("{:.2f}", days(part)),
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
  return table.text(terminal);
}

std::string steps_view(const Terminal& terminal, const Campaign& campaign,
                       const CampaignRequest& request) {
  std::int64_t steps = 0;
  for (const RampPhase& phase : campaign.phases) steps += phase.steps;
  std::string text = campaign_row(
      terminal, "steps", "{} steps of {} ({})", count_text(steps), time_text(campaign.step),
      request.step > Seconds() ? "measured, given with --step-time" : "predicted");
  if (campaign.phases.size() > 1) {
    Seconds ramp;
    for (std::size_t i = 0; i + 1 < campaign.phases.size(); ++i) {
      ramp += static_cast<double>(campaign.phases[i].steps) * campaign.phase_steps[i];
    }
    text +=
        campaign_row(terminal, "batch ramp",
                     "{} smaller batch sizes first, from {} sequences ({} per step); {} in total",
                     campaign.phases.size() - 1, campaign.phases.front().global_batch,
                     time_text(campaign.phase_steps.front()), duration_text(ramp));
  }
  return text;
}

std::string failures_view(const Terminal& terminal, const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  const std::string unit = unit_name(report);
  const CampaignCheckpoints& c = campaign.checkpoints;
  const Replays& r = campaign.replays;
  const Replays& unlimited = campaign.unlimited;
  const Seconds expected = campaign.time.steps + campaign.time.checkpoints + campaign.time.failures;
  std::string text =
      campaign_row(terminal, "checkpoint",
                   "{} each, written in {}{}; {} in the run, one per {} of work ({} full steps){}",
                   to_string(c.size), duration_text(c.write),
                   c.stop < c.write ? ", stopping the run for " + time_text(c.stop) : "",
                   count_text(c.count), duration_text(c.interval), count_text(c.steps),
                   c.stop < c.write && c.interval <= kBusyStorage * c.write
                       ? "; the storage is busy all the time"
                       : "");
  text += campaign_row(terminal, "best interval", "{}; {} by Daly's formula, {} by Young's",
                       duration_text(c.best), duration_text(c.daly), duration_text(c.young));
  text +=
      campaign_row(terminal, fmt::format("a {} fails", unit).c_str(),
                   "every {}; {:.1f} times in the run", duration_text(campaign.mtbf), r.failures);
  text += campaign_row(terminal, "closed form",
                       "{:.2f} days; mean of {} simulated runs: {:.2f} +- {:.2f} days (95 %)",
                       days(expected), count_text(unlimited.campaigns), days(unlimited.mean),
                       days(1.96 * unlimited.standard_error));
  text += campaign_row(terminal, "simulated",
                       "median {:.1f} days; 90 % of the simulated runs take {:.1f} to {:.1f}",
                       days(r.median), days(r.low), days(r.high));
  return text + campaign_row(terminal, fmt::format("spare {}s", unit).c_str(),
                             "{}; with {}, the run lacks a {} 1 % of the time",
                             campaign.spare_nodes, campaign.spare_nodes_wanted, unit);
}

std::string replan_view(const Terminal& terminal, const CampaignReport& report) {
  Table table({{"lost"}, {"GPUs"}, {"plan", Align::kLeft}, {"step"}, {"slower"}, {"GiB"}});
  std::string batches;
  for (const Replanned& row : report.replanned) {
    if (row.whole_batch > 0) {
      batches += fmt::format("  with {} lost, a global batch of {} would use all remaining GPUs\n",
                             counted_text(row.lost_nodes, "node"), count_text(row.whole_batch));
    }
    if (row.best.empty()) {
      table.add_row({std::to_string(row.lost_nodes), "-", "no plan fits", "-", "-", "-"});
      continue;
    }
    const PlannedRun& run = row.best.front();
    // Compare with the prediction of the original plan, because its measured step does not apply to
    // other plans.
    const double speed = run.predicted.tokens_per_s;
    const double own =
        static_cast<double>(report.plan.global_batch * report.named.scenario.model.seq) /
        report.campaign.predicted_step.value();
    table.add_row({std::to_string(row.lost_nodes), std::to_string(gpu_count(run.plan)),
                   short_name(run.plan), time_text(run.predicted.step),
                   percent_text(own / speed - 1), gib_text(run.predicted.peak)});
  }
  return table.text(terminal) + batches;
}

std::string assumptions_view(const Terminal& terminal, const CampaignReport& report) {
  constexpr std::size_t kIndent = 34;
  std::string text;
  for (const ShownAssumption& row : shown_assumptions(report)) {
    text += fmt::format("  {:<18} {:>10}   {}\n", row.key, row.value,
                        terminal.paint(wrapped(printable(row.source),
                                               terminal.room(kIndent, 100 - kIndent), kIndent),
                                       Ink::kDim));
  }
  return text;
}

}  // namespace

std::string campaign_text(const Terminal& terminal, const CampaignReport& report) {
  const Campaign& campaign = report.campaign;
  std::string text = scenario_view(terminal, report.named, report.plan) + "\n";
  text += heading(terminal, "CAMPAIGN",
                  fmt::format("{} tokens on {}", large_text(report.request.tokens),
                              counted_text(campaign.nodes, unit_name(report))));
  text += campaign_row(terminal, "plan", "{}", short_name(report.plan));
  text += steps_view(terminal, campaign, report.request);
  text += bill_view(terminal, report);
  text += assumed_view(terminal, report.named) + "\n";
  if (report.goal) text += goal_view(terminal, *report.goal) + "\n";
  text += heading(terminal, "WHERE THE TIME GOES") + time_view(terminal, report) + "\n";
  text += heading(terminal, "FAILURES AND CHECKPOINTS") + failures_view(terminal, report) + "\n";
  if (!report.replanned.empty()) {
    text += heading(terminal, "WITH NODES LOST FOR GOOD",
                    unit_name(report) == std::string_view("node")
                        ? "best plan on the remaining nodes"
                        : "best plan on the remaining nodes; a lost node is a whole rack");
    text += replan_view(terminal, report) + "\n";
  }
  text += heading(terminal, "ASSUMED", "from " + printable(report.assumptions.name));
  return text + assumptions_view(terminal, report);
}

}  // namespace tpsim::cli
