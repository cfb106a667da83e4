// Reads other_names.txt: option names and values of other programs.
#include "cli/options/options.h"
#include "core/base/text.h"
#include "core/base/text_table.h"

namespace tpsim::cli {

extern const std::span<const unsigned char> kOtherNames;  // other_names.txt

namespace {

const std::vector<TableBlock>& lines() {
  static const std::vector<TableBlock> kLines = read_table(kOtherNames);
  return kLines;
}

// Splits "NAMES: TEXT" at the colon and returns the text.
std::string_view cut_text(std::string_view& names) {
  const std::size_t colon = names.find(": ");
  const std::string_view text = names.substr(colon + 2);
  names = names.substr(0, colon);
  return text;
}

}  // namespace

const OptionRow* option_called(std::string_view name) {
  for (const TableBlock& line : lines()) {
    std::string_view names = line.name;
    const std::string_view option = cut_off(names, " ");
    if (line.kind != "option" || !matches_any(name, names)) continue;
    for (const OptionRow& row : option_rows()) {
      if (row.name == option) return &row;
    }
  }
  return nullptr;
}

std::string_view possible_instead(std::string_view option, std::string_view value) {
  for (const TableBlock& line : lines()) {
    std::string_view parts = line.name;
    if (line.kind != "value" || cut_off(parts, " ") != option) continue;
    const std::string_view text = cut_text(parts);
    while (!parts.empty()) {
      if (value.find(cut_off(parts, " ")) != std::string_view::npos) return text;
    }
  }
  return "";
}

std::string_view written_instead(std::string_view name) {
  for (const TableBlock& line : lines()) {
    std::string_view names = line.name;
    if (line.kind != "instead") continue;
    const std::string_view text = cut_text(names);
    if (matches_any(name, names)) return text;
  }
  return "";
}

}  // namespace tpsim::cli
