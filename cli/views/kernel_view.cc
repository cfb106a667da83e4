#include <fmt/format.h>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/evidence_view.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<KernelRow>& rows) {
  const TimeScale scale = time_scale(kernels.step);
  Table table(columns_of(fmt::format("<|measured {}|predicted|off", scale.unit)));
  for (const KernelRow& row : rows) {
    const Seconds off = row.measured - row.predicted;
    table.add_row(
        {row.what, scaled_text(row.measured, scale), scaled_text(row.predicted, scale),
         Cell((off < Seconds() ? "-" : "+") + scaled_text(Seconds(std::abs(off.value())), scale),
              off > Seconds() ? Ink::kBad : Ink::kGood)});
  }
  std::string text =
      "\n" +
      heading(terminal, "KERNELS",
              fmt::format("rank {}, mean of {}; the profiler slows the host down", kernels.rank,
                          counted_text(std::ssize(kernels.steps), "step"))) +
      table.text(terminal);
  if (kernels.collectives.empty()) return text;
  Table calls(columns_of(fmt::format("<collective|calls|total {}", scale.unit)));
  for (const TracedCollective& one : kernels.collectives) {
    calls.add_row(
        {printable(one.name), fmt::format("{:.0f}", one.calls), scaled_text(one.time, scale)});
  }
  return text + "\n" + calls.text(terminal);
}

}  // namespace tpsim::cli
