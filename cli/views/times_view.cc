// Measured times of kernels, ops and collectives next to the predicted ones.
#include <fmt/format.h>

#include <algorithm>

#include "cli/views/answer_views.h"
#include "core/base/numbers.h"

namespace tpsim::cli {

std::string error_text(double share) { return fmt::format("{:+.1f} %", 100 * share); }

void write_kernels(TextReport& out, const KernelTimes& kernels,
                   const std::vector<KernelRow>& rows) {
  out.heading("KERNELS",
              fmt::format("rank {}, mean of {}; the profiler slows the host down", kernels.rank,
                          counted_text(std::ssize(kernels.steps), "step")));
  const TimeScale scale = time_scale(kernels.step);
  Table table(columns_of(fmt::format("<|measured {}|predicted|off", scale.unit)));
  for (const KernelRow& row : rows) {
    const Seconds off = row.measured - row.predicted;
    table.add_row(
        {row.what, scaled_text(row.measured, scale), scaled_text(row.predicted, scale),
         Cell((off < Seconds() ? "-" : "+") + scaled_text(Seconds(std::abs(off.value())), scale),
              off > Seconds() ? Ink::kBad : Ink::kGood)});
  }
  out.table(table);
  if (kernels.collectives.empty()) return;
  Table calls(columns_of(fmt::format("<collective|calls|total {}", scale.unit)));
  for (const TracedCollective& one : kernels.collectives) {
    calls.add_row(
        {printable(one.name), fmt::format("{:.0f}", one.calls), scaled_text(one.time, scale)});
  }
  out.blank();
  out.table(calls);
}

void write_compared(TextReport& out, const std::string& title,
                    const std::vector<app::ComparedTime>& rows, std::size_t most) {
  Table table(columns_of("<" + title + "|runs|predicted|measured|residual|error"));
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const app::ComparedTime& row = rows[i];
    const bool measured = row.measured > Seconds();
    const double residual = row.residual().value();
    table.add_row({row.what, std::to_string(row.count), to_string(row.predicted),
                   to_string(row.measured), fmt::format("{:+.3f} ms", 1e3 * residual),
                   measured ? error_text(row.error()) : "-"});
  }
  out.table(table);
  if (rows.size() > most) out.line("  {} more rows are not shown", rows.size() - most);
}

}  // namespace tpsim::cli
