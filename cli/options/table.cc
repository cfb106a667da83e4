#include "cli/options/table.h"

#include <algorithm>

#include "cli/options/wrapping.h"
#include "core/base/check.h"
#include "core/base/text.h"

namespace tpsim::cli {

std::vector<Column> columns_of(std::string_view titles) {
  std::vector<Column> columns;
  for (bool goes_on = true; goes_on;) {
    goes_on = titles.find('|') != std::string_view::npos;
    const std::string_view title = cut_off(titles, "|");
    const bool left = title.starts_with('<');
    columns.push_back({std::string(title.substr(left)), left ? Align::kLeft : Align::kRight});
  }
  return columns;
}

void Table::add_row(std::vector<Cell> cells) {
  TPSIM_CHECK(cells.size() == columns_.size(),
              "the number of cells differs from the number of columns");
  rows_.push_back(std::move(cells));
}

std::size_t Table::width_of(std::size_t column) const {
  std::size_t width = display_width(columns_[column].title);
  for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
  return width;
}

std::string Table::line(const Terminal& terminal, const std::vector<Cell>& cells) const {
  std::string text;
  // Spaces to write before the next text, so that lines do not end with spaces.
  std::size_t owed = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t padding = width_of(i) - display_width(cells[i].text);
    const bool right = columns_[i].align == Align::kRight;
    owed += 2 + (right ? padding : 0);
    if (!cells[i].text.empty()) {
      text += std::string(owed, ' ') + terminal.paint(cells[i].text, cells[i].ink);
      owed = 0;
    }
    owed += right ? 0 : padding;
  }
  return text + "\n";
}

std::string Table::text(const Terminal& terminal) const {
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Ink::kDim);
  const bool titled = std::any_of(columns_.begin(), columns_.end(),
                                  [](const Column& column) { return !column.title.empty(); });
  std::string text = titled ? line(terminal, titles) : "";
  for (const auto& row : rows_) text += line(terminal, row);
  return text;
}

}  // namespace tpsim::cli
