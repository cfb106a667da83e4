// tpsim explain --program: lists the ops, collectives and allocations of a rank in order, for each
// part of the model. The prediction uses the same program.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/explain_view.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "lowering/passes/quantization.h"

namespace tpsim::cli {
namespace {

std::string flops_text(double flops) { return flops > 0 ? fmt::format("{:.3g}", flops) : ""; }

constexpr std::size_t kWhatWidth = 48;  // width of the first column

// Adds a row. A long first cell continues in additional rows.
void add_row(Table& table, const std::string& what, std::vector<Cell> others) {
  const std::string lines = wrapped(what, kWhatWidth, 2);
  std::string_view left = lines;
  std::vector<Cell> cells{std::string(cut_off(left, "\n"))};
  cells.insert(cells.end(), others.begin(), others.end());
  table.add_row(std::move(cells));
  while (!left.empty()) table.add_row({std::string(cut_off(left, "\n")), "", "", ""});
}

void add_event(Table& table, const LoweredOp& op) {
  const std::string pass = name_of_pass(op);  // dims of a cast are not sizes
  std::string what = pass.empty() ? to_string(op.key) : pass;
  if (op.repeats != 1) what += fmt::format(", {:.0f} times", op.repeats);
  if (op.launches > 1) what += fmt::format(", {} kernels", op.launches);
  add_row(table, what,
          {to_string(Bytes(op.bytes)), flops_text(op.flops), printable(op.label.text)});
}

void add_event(Table& table, const LoweredCollective& record) {
  std::string what =
      fmt::format("{}, {} ranks ({})", name_of(record.kind), record.ranks, name_of(record.group));
  if (record.calls != 1) what += fmt::format(", {:.0f} calls", record.calls);
  if (record.overlap != Overlap::kNone) {
    what += fmt::format(", beside {}", plain(name_of(record.overlap)));
  }
  table.add_row({Cell(std::move(what), Ink::kBold),
                 to_string(Bytes(static_cast<double>(record.bytes))), "",
                 printable(record.label.text)});
}

void add_event(Table& table, const LoweredCopy& copy) {
  table.add_row({fmt::format("copy, {:.0f} kernels", copy.kernels), to_string(copy.moved), "",
                 printable(copy.label.text)});
}

void add_event(Table& table, const HostWork& work) {
  table.add_row({Cell(fmt::format("host, {}{}", time_text(work.busy),
                                  work.synchronizes ? " after the device is idle" : ""),
                      Ink::kDim),
                 "", "", printable(work.label)});
}

void add_event(Table& table, const IssuedMemory& memory) {
  const AllocationRecord& record = memory.record;
  const auto dim = [](std::string text) { return Cell(std::move(text), Ink::kDim); };
  table.add_row({dim(fmt::format("{} {} #{}", memory.is_free ? "free" : "allocate",
                                 name_of(record.category), memory.tensor)),
                 dim(to_string(Bytes(static_cast<double>(record.bytes)))), "",
                 dim(printable(record.label))});
}

std::string phase_view(const Terminal& terminal, const PhaseProgram& program) {
  Table table(columns_of(fmt::format("<{}|bytes|FLOPs|<label", name_of(program.phase))));
  for (const IssuedEvent& event : program.events) {
    std::visit([&](const auto& one) { add_event(table, one); }, event);
  }
  return table.text(terminal);
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

}  // namespace

std::string program_text(const Terminal& terminal, const NamedScenario& named,
                         const PlannedRun& run, const std::vector<PartProgram>& programs) {
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
  text += heading(terminal, "PLAN") + plan_view(terminal, run.plan, named.settings_left);
  const auto kinds = static_cast<std::size_t>(block_kind_count(named.scenario.model));
  for (const PartProgram& part : programs) {
    text += "\n" + heading(terminal, title_of(part.part), part_note(part, kinds));
    for (const PhaseProgram& phase : part.phases) text += phase_view(terminal, phase);
  }
  return text;
}

}  // namespace tpsim::cli
