// tpsim explain --memory: the contents of the fullest stage's memory at its peak.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

constexpr double kLeastShare = 0.001;  // smaller rows are summed

std::string size_text(double bytes) {
  return (bytes < 0 ? "-" : "") + to_string(Bytes(std::abs(bytes)));
}

std::string moment_of(const PeakMemory& peak, const Plan& plan) {
  const bool has_micro_batch = is_task(peak.task.kind);
  std::string text(name_of(peak.task.kind));
  if (has_micro_batch) text += fmt::format(" of micro-batch {}", peak.task.micro_batch);
  if (has_micro_batch && plan.virtual_stages > 1)
    text += fmt::format(", chunk {}", peak.task.chunk);
  return text;
}

void write_peak(TextReport& out, const PlannedRun& run, const PeakMemory& peak) {
  const double total = peak.total();
  out.heading(
      "MEMORY AT THE PEAK",
      fmt::format("{} of {} on stage {}, in the {}", to_string(Bytes(total)),
                  to_string(run.predicted.capacity), peak.stage, moment_of(peak, run.plan)));
  Table table(columns_of("bytes|share|<category|<part|<contents"));
  double others = 0;
  for (const LiveMemory& live : peak.live) {
    if (std::abs(live.bytes) < kLeastShare * total) {
      others += live.bytes;
      continue;
    }
    table.add_row({size_text(live.bytes), percent_text(live.bytes / total),
                   std::string(name_of(live.group.category)), std::string(live.group.part),
                   printable(std::string(live.group.label))});
  }
  if (others != 0)
    table.add_row({size_text(others), percent_text(others / total), "", "", "smaller"});
  out.table(table);
}

void write_measured(TextReport& out, const ComparedSnapshot& measured) {
  std::string about = fmt::format("snapshot of rank {}, {} events", measured.rank,
                                  count_text(measured.peak.events));
  if (measured.peak.missing > Bytes())
    about += fmt::format("; ran out of memory at {}", to_string(measured.peak.missing));
  if (measured.peak.start_up > measured.peak.allocated)
    about += fmt::format("; start-up reached {}, not shown", to_string(measured.peak.start_up));
  out.heading("MEASURED", about);
  Table table(columns_of("<memory|measured|predicted|off"));
  for (const ComparedBytes& row : measured.rows) {
    table.add_row({std::string(row.what), to_string(row.measured), to_string(row.predicted),
                   fmt::format("{:+.1f} %", 100 * (row.measured / row.predicted - 1))});
  }
  out.table(table);
}

void write_sites(TextReport& out, const SnapshotPeak& peak) {
  out.heading("MEASURED AT THE PEAK", to_string(peak.allocated) + " allocated");
  Table table(columns_of("bytes|share|blocks|<allocated at"));
  Bytes others;
  for (const SiteMemory& site : peak.live) {
    if (site.bytes < kLeastShare * peak.allocated) {
      others += site.bytes;
      continue;
    }
    table.add_row({to_string(site.bytes), percent_text(site.bytes / peak.allocated),
                   count_text(site.blocks), printable(site.site)});
  }
  if (others > Bytes())
    table.add_row({to_string(others), percent_text(others / peak.allocated), "", "smaller"});
  out.table(table);
}

}  // namespace

void write_peak_memory(TextReport& out, const NamedScenario& named, const PlannedRun& run,
                       const MemoryAnswer& answer) {
  write_scenario(out, named, run.plan);
  out.heading("PLAN");
  write_plan(out, run.plan, named.settings_left);
  if (!answer.measured) return write_peak(out, run, fullest_stage(answer.peaks));
  write_measured(out, *answer.measured);
  write_peak(out, run, answer.peaks[static_cast<std::size_t>(answer.measured->stage)]);
  write_sites(out, answer.measured->peak);
}

}  // namespace tpsim::cli
