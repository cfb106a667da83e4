// Reads tables of facts that are embedded as text. A line without indentation starts a block; the
// indented lines after it belong to the block. Lines that start with '#' are comments.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tpsim {

struct TableBlock {
  std::string_view kind, name;  // first word of the block, and the rest of the line
  std::vector<std::pair<std::string_view, std::string_view>> lines = {};  // the same of each line

  bool has(std::string_view word) const;
  // Returns the rest of the first line with this word; empty if there is none.
  std::string_view rest_of(std::string_view word) const;
};

// Call once for each table: the result's texts live as long as the program. The rests of lines, and
// the views of rest_of(), end with a null character.
std::vector<TableBlock> read_table(std::span<const unsigned char> text);

}  // namespace tpsim
