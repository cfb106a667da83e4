// Rows of the plan table: filter, order, grouping by layout, and texts.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

// Returns indices into `plans`, filtered and sorted. The filter is a list of conditions that must
// all be satisfied: "tp=4", "mb<=2", "step<100", "gib<70", or a value such as "flash", "full",
// "sp", "1f1b".
std::vector<std::size_t> shown_plans(const std::vector<PlannedRun>& plans, const TableState& table);

// A layout in the table: all plans with these degrees that satisfy the filter.
struct LayoutGroup {
  ParallelDegrees key{};
  std::size_t best = 0;               // index of the fastest variant
  std::vector<std::size_t> variants;  // indices, in the order of the table, with the best
};

// Returns the layouts in the table, sorted by their best variants. `plans` must be sorted by step
// time.
std::vector<LayoutGroup> layout_groups(const std::vector<PlannedRun>& plans,
                                       const TableState& table);

// A row of the table: the best variant of a layout, or another variant of an expanded layout.
struct TableRow {
  std::size_t plan = 0;      // index into the plans found
  std::size_t layout = 0;    // index into the groups
  std::size_t variants = 0;  // number of variants of the layout; 0 in a variant's row
};
std::vector<TableRow> table_rows(const std::vector<LayoutGroup>& groups, const TableState& table);

// Returns the first word of the filter that is unknown; empty if there is none.
std::string unknown_filter_word(const std::string& filter);

// Whether the plan's step is not distinguishable from the fastest within the prediction interval.
bool ties_with(const Prediction& plan, const Prediction& best);

// Returns by how much a step is slower than the best: "+2.1 %".
std::string loss_text(Seconds step, Seconds best);

// Returns "tp 8 · pp 12 · dp 4", with cp, ep and etp if they are used.
std::string degrees_text(const Plan& plan);
// "no recompute", "full recompute", "recompute of 3 blocks a chunk".
std::string recompute_text(const Plan& plan);

}  // namespace tpsim::gui
