#include "cli/views/times_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/options/table.h"

namespace tpsim::cli {

std::string error_text(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string compared_table(const Terminal& terminal, const std::string& title,
                           const std::vector<ComparedTime>& rows, std::size_t most) {
  Table table(columns_of("<" + title + "|runs|predicted|measured|residual|error"));
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const ComparedTime& row = rows[i];
    const bool measured = row.measured > Seconds();
    const double residual = row.residual().value();
    table.add_row({row.what, std::to_string(row.count), to_string(row.predicted),
                   to_string(row.measured), fmt::format("{:+.3f} ms", 1e3 * residual),
                   measured ? error_text(row.error()) : "-"});
  }
  std::string text = table.text(terminal);
  if (rows.size() > most) text += fmt::format("  {} more rows are not shown\n", rows.size() - most);
  return text;
}

}  // namespace tpsim::cli
