#include "cli/table.h"

#include <algorithm>

#include "core/check.h"

namespace tpsim::cli {

void Table::add_row(std::vector<Cell> cells) {
  TPSIM_CHECK(cells.size() == columns_.size(), "a row with another number of cells than columns");
  rows_.push_back(std::move(cells));
}

std::size_t Table::width_of(std::size_t column) const {
  std::size_t width = display_width(columns_[column].title);
  for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
  return width;
}

std::string Table::line(const Terminal& terminal, const std::vector<Cell>& cells) const {
  std::string text;
  std::size_t owed = 0;  // spaces that only matter when something follows
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

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t taken = display_width(word);
    if (column > 0 && column + 1 + taken > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += taken;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace tpsim::cli
