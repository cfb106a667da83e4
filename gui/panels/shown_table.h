// The plan table as it is drawn: its rows, its texts, and the columns that fit.
#pragma once

#include <string>
#include <vector>

#include "core/base/numbers.h"
#include "gui/panels/ui.h"
#include "gui/views/plan_table.h"

namespace tpsim::gui {

struct TableColumn {
  TableColumnId id{};
  const char* title;
  bool is_number;
  int dropped;  // columns are hidden in this order if the table is narrow; 0: never
  const char* help;
};

struct ShownTable {
  std::vector<LayoutGroup> groups;
  std::vector<TableRow> rows;
  TimeScale scale;
  std::vector<const TableColumn*> columns;
  std::vector<float> widths;  // width of each column's text
  std::vector<std::string> hidden;
};

std::string text_in(const Ui& ui, const ShownTable& table, const TableRow& row,
                    TableColumnId column);
std::string title_of(const TableColumn& column, const ShownTable& table);

// Keeps the table between frames, because grouping and measuring all rows takes longer than drawing
// the visible ones.
class TableCache {
 public:
  // Returns the table for a width in pixels. Computed again only if the plans, the state of the
  // table, the width or the scale of the interface has changed.
  const ShownTable& table(const Ui& ui, float width);

 private:
  std::int64_t revision_ = -1;
  TableState state_;
  float width_ = 0, scale_ = 0;
  ShownTable table_;
};

}  // namespace tpsim::gui
