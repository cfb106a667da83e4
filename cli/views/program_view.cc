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
#include "sim/layers/low_precision.h"

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

void add_event(Table& table, const IssuedOp& op) {
  const OpRecord& record = op.record;
  const std::string pass = name_of_pass(record);  // dims of a cast are not sizes
  std::string what = pass.empty() ? to_string(record.key) : pass;
  if (op.kernels > 1) what += fmt::format(", {} kernels", op.kernels);
  add_row(table, what,
          {to_string(Bytes(record.bytes)), flops_text(record.flops), printable(record.label.text)});
}

void add_event(Table& table, const CollectiveRecord& record) {
  table.add_row({Cell(fmt::format("{}, {} ranks ({})", name_of(record.kind), record.ranks,
                                  name_of(record.group)),
                      Ink::kBold),
                 to_string(Bytes(static_cast<double>(record.bytes))), "",
                 printable(record.label.text)});
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
