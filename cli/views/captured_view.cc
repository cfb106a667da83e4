#include "app/answers/captured_answer.h"
#include "cli/options/text_report.h"
#include "cli/views/answer_views.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

using app::CapturedAnswer;

constexpr std::size_t kRowsShown = 10;
constexpr int kTimeBar = 30, kMemoryGauge = 20;

void write_times(TextReport& out, const std::vector<CapturedTime>& rows, Seconds whole) {
  Table table(columns_of("<||count|<"));
  for (std::size_t i = 0; i < rows.size() && i < kRowsShown; ++i) {
    table.add_row({rows[i].what, time_text(rows[i].time), fmt::format("{}", rows[i].count),
                   Cell(out.terminal().bar(rows[i].time / whole, kTimeBar), Ink::kGood)});
  }
  out.table(table);
  if (rows.size() > kRowsShown) {
    Seconds others;
    for (std::size_t i = kRowsShown; i < rows.size(); ++i) others += rows[i].time;
    out.line("  {} others, {}", rows.size() - kRowsShown, time_text(others));
  }
}

std::string software_text(const CapturedStep& step) {
  std::string text;
  for (const auto& [name, version] : step.software) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  }
  return text;
}

}  // namespace

void write_captured(TextReport& out, const CapturedAnswer& answer) {
  const auto& [step, machine, p] = answer;
  out.note(
      fmt::format("a captured step of rank {} of {} ({}), on {} of {} ({}), host times and "
                  "memory overheads of {}",
                  step.rank, step.world, software_text(step),
                  step.world == 1 ? "1 GPU" : fmt::format("{} GPUs", step.world),
                  machine.cluster.name, machine.profile.name, machine.stack.name));
  out.heading("PREDICTION");
  out.row("step time", "{}, 90 % interval {} to {}", out.bold(time_text(p.step)),
          time_text(p.step_low), time_text(p.step_high));
  out.row("", "{} of ops, {} waiting for collectives, {} waiting for the host", time_text(p.busy),
          time_text(p.exposed), time_text(p.host_wait));
  out.row("memory", "{:.1f} of {:.1f} GiB  {}  p(OOM) {}", gib(p.peak), gib(p.capacity),
          out.terminal().gauge(p.peak / p.capacity, kMemoryGauge), chance_text(p.p_oom));
  out.row("sources", "{:.0f} % of device time measured, {:.0f} % interpolated, {:.0f} % computed",
          100 * p.sources.exact_entries, 100 * p.sources.interpolated_entries,
          100 * p.sources.model);
  out.heading("OPS");
  write_times(out, p.ops, p.step);
  if (!p.collectives.empty()) {
    out.heading("COLLECTIVES", "also where they overlap");
    write_times(out, p.collectives, p.step);
  }
  out.heading("MODULES");
  write_times(out, p.modules, p.step);
  if (!p.rough.empty()) {
    out.heading("ROUGH PRICES", "kernels that the profile did not time");
    write_times(out, p.rough, p.step);
  }
  out.heading("MEMORY", "GiB at the peak");
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const Bytes bytes = p.memory.by_category[static_cast<std::size_t>(i)];
    if (bytes > Bytes()) {
      out.row(name_of(static_cast<MemoryCategory>(i)), "{:8.2f}", gib(bytes));
    }
  }
  out.row("context", "{:8.2f}", gib(p.memory.context));
  out.row("fragmentation", "{:8.2f}", gib(p.memory.fragmentation));
  if (step.assumed.empty()) return;
  out.heading("ASSUMED");
  for (const auto& [line, what] : step.assumed) out.prose(fmt::format("{} ({})", what, line));
}

}  // namespace tpsim::cli
