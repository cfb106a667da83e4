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
    std::string_view title = cut_off(titles, "|");
    const bool is_optional = title.starts_with('?');
    title.remove_prefix(is_optional);
    const bool left = title.starts_with('<');
    columns.push_back(
        {std::string(title.substr(left)), left ? Align::kLeft : Align::kRight, is_optional});
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

std::vector<bool> Table::shown_at(std::size_t width) const {
  std::vector<bool> shown(columns_.size(), true);
  std::size_t whole = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) whole += 2 + width_of(i);
  for (std::size_t i = columns_.size(); i-- > 0 && width > 0 && whole > width;) {
    if (!columns_[i].is_optional) continue;
    shown[i] = false;
    whole -= 2 + width_of(i);
  }
  return shown;
}

std::string Table::line(const Terminal& terminal, const std::vector<Cell>& cells,
                        const std::vector<bool>& shown) const {
  std::string text;
  // Spaces to write before the next text, so that lines do not end with spaces.
  std::size_t owed = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!shown[i]) continue;
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
  const std::vector<bool> shown = shown_at(terminal.columns);
  std::string text = titled ? line(terminal, titles, shown) : "";
  for (const auto& row : rows_) text += line(terminal, row, shown);
  std::string hidden;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (!shown[i]) hidden += (hidden.empty() ? "" : ", ") + columns_[i].title;
  }
  if (hidden.empty()) return text;
  return text + "  " + terminal.paint("not shown at this width: " + hidden, Ink::kDim) + "\n";
}

}  // namespace tpsim::cli
