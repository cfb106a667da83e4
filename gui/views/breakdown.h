// The step as rows that add up: every term of some size, and the sum of the small ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plan/report.h"
#include "gui/draw/palette.h"

namespace tpsim::gui {

// Returns a name with spaces for underscores: "gradient reduction".
std::string plain(std::string_view name);

struct BreakdownRow {
  std::string name;  // "gradient reduction", "9 smaller terms"
  Seconds before;    // sum of the rows above
  Seconds time;
  TermClass kind{};            // of the largest term
  const Term* term = nullptr;  // null: a sum
  std::string terms = {};      // of a sum: its terms with their times, one per line
};

// Returns at most `most` rows in the order of the terms, the sum last. Terms below 0.2 % of the
// step are summed up. The rows refer to `predicted`.
std::vector<BreakdownRow> breakdown_rows(const Prediction& predicted, std::size_t most);

// Share of the step that the busiest stage waits for other stages: the term pipeline_bubble.
double bubble_share(const Prediction& predicted);

}  // namespace tpsim::gui
