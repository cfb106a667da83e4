// tpsim explain --program: lists the ops, collectives and allocations of a rank in order, for each
// part of the model, or the differences to another plan. The prediction uses the same program.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/answers/top_ops.h"
#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

std::string flops_text(double flops) { return flops > 0 ? fmt::format("{:.3g}", flops) : ""; }

constexpr std::size_t kWhatWidth = 44;  // width of the first column

// Adds a row. A long first cell continues in additional rows.
void add_row(Table& table, const Cell& what, std::vector<Cell> others) {
  const std::string lines = wrapped(what.text, kWhatWidth, 2);
  std::string_view left = lines;
  const std::size_t count = others.size();
  std::vector<Cell> cells{Cell(std::string(cut_off(left, "\n")), what.ink)};
  cells.insert(cells.end(), others.begin(), others.end());
  table.add_row(std::move(cells));
  while (!left.empty()) {
    cells.assign(count + 1, Cell(""));
    cells.front() = Cell(std::string(cut_off(left, "\n")), what.ink);
    table.add_row(std::move(cells));
  }
}

// The first cell of an event's row, and the cells for bytes, FLOPs and label.
struct EventCells {
  Cell what;
  std::string bytes, flops, label;
};

EventCells cells_of(const LoweredOp& op) {
  const std::string pass = app::name_of_pass(op);  // dims of a cast are not sizes
  std::string what = pass.empty() ? to_string(op.key) : pass;
  if (op.repeats > 1) what += fmt::format(", {:.0f} times", op.repeats);
  if (op.repeats < 1) what += fmt::format(", one of {:.0f} passes", 1 / op.repeats);
  if (op.launches > 1) what += fmt::format(", {} kernels", op.launches);
  return {std::move(what), to_string(Bytes(op.bytes)), flops_text(op.flops), op.label.text};
}

EventCells cells_of(const LoweredCollective& record) {
  std::string what =
      fmt::format("{}, {} ranks ({})", name_of(record.kind), record.ranks, name_of(record.group));
  if (record.calls > 1) what += fmt::format(", {:.0f} calls", record.calls);
  if (record.calls < 1) what += ", part of a call";
  const Bytes shown(std::min(1.0, record.calls) * static_cast<double>(record.bytes));
  return {Cell(std::move(what), Ink::kBold), to_string(shown), "", record.label.text};
}

EventCells cells_of(const IssuedWait& wait) {
  std::string what;
  constexpr std::size_t kNamed = 3;
  for (std::size_t i = 0; i < std::min(kNamed, wait.hidden_by.size()); ++i) {
    what += fmt::format("{}{}", i > 0 ? ", " : "after ", wait.hidden_by[i]);
  }
  if (wait.hidden_by.size() > kNamed) {
    what += fmt::format(" and {} more", wait.hidden_by.size() - kNamed);
  }
  return {Cell(std::move(what)), "", "", wait.record.label.text};
}

EventCells cells_of(const LoweredCopy& copy) {
  return {copy.kernels == 1 ? "copy" : fmt::format("copy, {:.0f} kernels", copy.kernels),
          to_string(copy.moved), "", copy.label.text};
}

EventCells cells_of(const HostWork& work) {
  return {Cell(work.synchronizes ? "host, after the device is idle" : "host", Ink::kDim), "", "",
          work.label};
}

EventCells cells_of(const IssuedMemory& memory) {
  const AllocationRecord& record = memory.record;
  return {Cell(fmt::format("{} {} #{}", memory.is_free ? "free" : "allocate",
                           name_of(record.category), memory.tensor),
               Ink::kDim),
          to_string(Bytes(static_cast<double>(record.bytes))), "", record.label};
}

void add_event(Table& table, const IssuedEvent& event) {
  EventCells cells = std::visit([](const auto& one) { return cells_of(one); }, event.what);
  if (event.call > 0) {
    cells.what.text = std::holds_alternative<IssuedWait>(event.what)
                          ? fmt::format("wait for #{} {}", event.call, cells.what.text)
                          : fmt::format("#{} {}", event.call, cells.what.text);
  }
  const bool is_memory = std::holds_alternative<IssuedMemory>(event.what);
  const auto cell = [&](std::string text) {
    return is_memory ? Cell(std::move(text), Ink::kDim) : Cell(std::move(text));
  };
  const std::string time = event.time > Seconds() ? time_text(event.time) : "";
  add_row(table, cells.what,
          {cell(is_memory ? "" : std::string(name_of(event.stream))), cell(std::move(cells.bytes)),
           cell(std::move(cells.flops)), cell(time), cell(std::string(event.source)),
           cell(printable(cells.label))});
}

std::string title_of(ProgramPart part) { return in_capitals(plain(name_of(part))); }

std::string part_note(const PartProgram& part, std::size_t kinds) {
  switch (part.part) {
    case ProgramPart::kTransfer: return fmt::format("{} in the model", part.count);
    case ProgramPart::kBlock: break;
    case ProgramPart::kWordEmbeddings:
    case ProgramPart::kEmbedding:
    case ProgramPart::kHead: return "";
  }
  std::string note = counted_text(part.count, "layer");
  if (kinds > 1) note += fmt::format(" of kind {}", part.block);
  if (part.is_recomputed) note += ", recomputed";
  return note;
}

// A row with the times of an event in two programs.
void add_difference(Table& table, const EventDifference& one) {
  const auto time_of = [](const std::optional<IssuedEvent>& event) {
    return event ? time_text(event->time) : std::string("-");
  };
  EventCells cells = std::visit([](const auto& event) { return cells_of(event); },
                                (one.first ? one.first : one.second)->what);
  add_row(table, cells.what, {time_of(one.first), time_of(one.second), printable(cells.label)});
}

void write_phases(TextReport& out, const PartDifference& part, const std::string& first,
                  const std::string& second) {
  for (const PhaseDifference& phase : part.phases) {
    Table table(columns_of(fmt::format("<{}|{}|{}|<label", name_of(phase.phase), first, second)));
    for (const EventDifference& one : phase.events) add_difference(table, one);
    out.table(table);
  }
}

// Lists the passes that change the difference of both times. Empty for a part without work of its
// own in a micro-batch.
void write_times(TextReport& out, const PartDifference& part) {
  const TimeAfterPass& last = part.times.back();
  if (last.first == Seconds() && last.second == Seconds()) return;
  Table table(columns_of("<after pass|this plan|other plan|difference"));
  Seconds before;
  for (const TimeAfterPass& time : part.times) {
    const Seconds difference = time.first - time.second;
    const bool is_last = &time == &last;
    if (difference == std::exchange(before, difference) && !is_last) continue;
    table.add_row(
        {is_last ? "all" : std::string(time.pass), time_text(time.first), time_text(time.second),
         (difference < Seconds() ? "-" : "+") + time_text(Seconds(std::abs(difference.value())))});
  }
  out.table(table);
}

}  // namespace

void write_program(TextReport& out, const NamedScenario& named, const PlannedRun& run,
                   const std::vector<PartProgram>& programs) {
  write_scenario(out, named, run.plan);
  out.heading("PLAN");
  write_plan(out, run.plan, named.settings_left);
  const auto kinds = static_cast<std::size_t>(block_kind_count(named.scenario.model));
  for (const PartProgram& part : programs) {
    out.heading(title_of(part.part), part_note(part, kinds));
    for (const PhaseProgram& phase : part.phases) {
      Table table(columns_of(
          fmt::format("<{}|<stream|bytes|FLOPs|time|<source|<label", name_of(phase.phase))));
      for (const IssuedEvent& event : phase.events) add_event(table, event);
      out.table(table);
    }
  }
}

void write_difference(TextReport& out, const SimulatedPlan& plan, const SimulatedPlan& other,
                      const std::vector<PartDifference>& parts) {
  write_scenario(out, plan.named, plan.run.plan);
  out.heading("THIS PLAN");
  write_plan(out, plan.run.plan, plan.named.settings_left);
  out.blank();
  write_scenario(out, other.named, other.run.plan);
  out.heading("OTHER PLAN");
  write_plan(out, other.run.plan, other.named.settings_left);
  if (parts.empty()) {
    out.blank();
    out.line("Both plans run the same program.");
  }
  const std::int64_t kinds = block_kind_count(plan.named.scenario.model);
  for (const PartDifference& part : parts) {
    const bool names_kind = part.part == ProgramPart::kBlock && kinds > 1;
    out.heading(title_of(part.part),
                fmt::format("{}time of a micro-batch without overlap",
                            names_kind ? fmt::format("kind {}: ", part.block) : ""));
    write_times(out, part);
    write_phases(out, part, "this plan", "other plan");
  }
}

void write_pass_difference(TextReport& out, const SimulatedPlan& plan, const ComparedPasses& passes,
                           const std::vector<PartDifference>& parts) {
  write_scenario(out, plan.named, plan.run.plan);
  out.heading("PLAN");
  write_plan(out, plan.run.plan, plan.named.settings_left);
  if (parts.empty()) {
    out.blank();
    out.line("The program is the same after {} and after {}.", passes.first, passes.second);
  }
  const auto kinds = static_cast<std::size_t>(block_kind_count(plan.named.scenario.model));
  for (const PartDifference& part : parts) {
    const bool names_kind = part.part == ProgramPart::kBlock && kinds > 1;
    out.heading(title_of(part.part), names_kind ? fmt::format("kind {}", part.block) : "");
    write_phases(out, part, fmt::format("after {}", passes.first),
                 fmt::format("after {}", passes.second));
  }
}

}  // namespace tpsim::cli
