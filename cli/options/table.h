// Aligned columns of text.
#pragma once

#include <string>
#include <vector>

#include "cli/options/terminal.h"

namespace tpsim::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
  bool is_optional = false;  // left out where a terminal is too narrow for all columns
};

// Parses column titles separated by '|'. A '<' before a title aligns the column to the left; a '?'
// before both makes the column optional.
std::vector<Column> columns_of(std::string_view titles);

struct Cell {
  std::string text;
  Ink ink = Ink::kPlain;
  Cell(std::string cell_text, Ink cell_ink = Ink::kPlain)  // NOLINT(google-explicit-constructor)
      : text(std::move(cell_text)), ink(cell_ink) {}
  Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // The number of cells must equal the number of columns.
  void add_row(std::vector<Cell> cells);

  // Returns the titles (unless all are empty) and the rows. Each column is preceded by two spaces,
  // and lines do not end with spaces. On a narrow terminal, leaves out optional columns from the
  // right, and names them below the table.
  std::string text(const Terminal& terminal) const;

 private:
  std::vector<bool> shown_at(std::size_t width) const;
  std::string line(const Terminal& terminal, const std::vector<Cell>& cells,
                   const std::vector<bool>& shown) const;
  std::size_t width_of(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tpsim::cli
