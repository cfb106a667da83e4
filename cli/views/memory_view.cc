// tpsim explain --memory: the contents of the fullest stage's memory at its peak.
#include <fmt/format.h>

#include <algorithm>
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

double total_of(const PeakMemory& peak) {
  double bytes = 0;
  for (const LiveMemory& live : peak.live) bytes += live.bytes;
  return bytes;
}

std::string size_text(double bytes) {
  return (bytes < 0 ? "-" : "") + to_string(Bytes(std::abs(bytes)));
}

std::string moment_of(const PeakMemory& peak, const Plan& plan) {
  const bool has_micro_batch =
      peak.task.kind == SpanKind::kForward || peak.task.kind == SpanKind::kBackward;
  std::string text(name_of(peak.task.kind));
  if (has_micro_batch) text += fmt::format(" of micro-batch {}", peak.task.micro_batch);
  if (has_micro_batch && plan.virtual_stages > 1)
    text += fmt::format(", chunk {}", peak.task.chunk);
  return text;
}

}  // namespace

std::string memory_text(const Terminal& terminal, const NamedScenario& named, const PlannedRun& run,
                        std::span<const PeakMemory> peaks) {
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
  text += heading(terminal, "PLAN") + plan_view(terminal, run.plan, named.settings_left) + "\n";
  const PeakMemory& fullest = *std::max_element(
      peaks.begin(), peaks.end(),
      [](const PeakMemory& a, const PeakMemory& b) { return total_of(a) < total_of(b); });
  const double total = total_of(fullest);
  text += heading(
      terminal, "MEMORY AT THE PEAK",
      fmt::format("{} of {} on stage {}, in the {}", to_string(Bytes(total)),
                  to_string(run.predicted.capacity), fullest.stage, moment_of(fullest, run.plan)));
  Table table(columns_of("bytes|share|<category|<part|<contents"));
  double others = 0;
  for (const LiveMemory& live : fullest.live) {
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
  return text + table.text(terminal);
}

}  // namespace tpsim::cli
