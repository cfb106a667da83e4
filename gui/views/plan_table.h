// Contents of the plan table: the visible plans, their order and texts.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

// Returns indices into `plans`, filtered and sorted. A filter is a list of conditions that must all
// hold: "tp=4", "mb<=2", "step<100", "gib<70", or a name such as "flash", "full", "sp", "1f1b".
std::vector<std::size_t> shown_plans(const std::vector<PlannedRun>& plans, const TableState& table);

LayoutKey layout_of(const Plan& plan);

// A layout of the table: the plans with these degrees that pass the filter.
struct LayoutGroup {
  LayoutKey key{};
  std::size_t best = 0;               // index of the fastest variant
  std::vector<std::size_t> variants;  // indices, in the order of the table, including the best
};

// Returns the layouts of the table, sorted by their best variants. `plans` is fastest first.
std::vector<LayoutGroup> layout_groups(const std::vector<PlannedRun>& plans,
                                       const TableState& table);

// A row of the table: the best variant of a layout, or another variant of an opened layout.
struct TableRow {
  std::size_t plan = 0;      // index
  std::size_t layout = 0;    // index into the groups
  std::size_t variants = 0;  // of the layout; 0 in rows of variants
};
std::vector<TableRow> table_rows(const std::vector<LayoutGroup>& groups, const TableState& table);

// Returns the first unknown word of the filter; empty if there is none.
std::string unknown_filter_word(const std::string& filter);

// Whether no interval distinguishes the plan from the fastest.
bool ties_with(const Prediction& plan, const Prediction& best);

// "+2.1 %": how much slower a step is than the best.
std::string loss_text(Seconds step, Seconds best);

// "tp 8 · pp 12 · dp 4", with cp, ep and etp where they are used.
std::string degrees_text(const Plan& plan);

}  // namespace tpsim::gui
