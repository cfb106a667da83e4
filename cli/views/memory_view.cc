// tpsim explain --memory: the contents of the fullest stage's memory at its peak.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/explain_view.h"
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

std::string peak_view(const Terminal& terminal, const PlannedRun& run, const PeakMemory& peak) {
  const double total = peak.total();
  const std::string head = heading(
      terminal, "MEMORY AT THE PEAK",
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
  return head + table.text(terminal);
}

std::string compared_view(const Terminal& terminal, const ComparedSnapshot& measured) {
  std::string about = fmt::format("snapshot of rank {}, {} events", measured.rank,
                                  count_text(measured.peak.events));
  if (measured.peak.missing > Bytes())
    about += fmt::format("; ran out of memory at {}", to_string(measured.peak.missing));
  if (measured.peak.start_up > measured.peak.allocated)
    about += fmt::format("; start-up reached {}, not shown", to_string(measured.peak.start_up));
  Table table(columns_of("<memory|measured|predicted|off"));
  for (const ComparedBytes& row : measured.rows) {
    table.add_row({std::string(row.what), to_string(row.measured), to_string(row.predicted),
                   fmt::format("{:+.1f} %", 100 * (row.measured / row.predicted - 1))});
  }
  return heading(terminal, "MEASURED", about) + table.text(terminal);
}

std::string sites_view(const Terminal& terminal, const SnapshotPeak& peak) {
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
  return heading(terminal, "MEASURED AT THE PEAK", to_string(peak.allocated) + " allocated") +
         table.text(terminal);
}

}  // namespace

std::string memory_text(const Terminal& terminal, const NamedScenario& named, const PlannedRun& run,
                        const MemoryAnswer& answer) {
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
  text += heading(terminal, "PLAN") + plan_view(terminal, run.plan, named.settings_left) + "\n";
  if (!answer.measured) return text + peak_view(terminal, run, fullest_stage(answer.peaks));
  text += compared_view(terminal, *answer.measured) + "\n";
  text += peak_view(terminal, run, answer.peaks[static_cast<std::size_t>(answer.measured->stage)]);
  return text + "\n" + sites_view(terminal, answer.measured->peak);
}

}  // namespace tpsim::cli
