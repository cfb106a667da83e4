// The step time as rows that add up: one row per large term, and one for the sum of the small
// terms.
#pragma once

#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/plan/report.h"
#include "gui/draw/palette.h"

namespace tpsim::gui {

struct BreakdownRow {
  std::string name;  // "gradient reduction", "9 smaller terms"
  Seconds before;    // sum of the rows above
  Seconds time;
  TermClass kind{};            // for the sum: class of the largest term
  const Term* term = nullptr;  // null: the sum of small terms
  std::string terms = {};      // of the sum: its terms with times, one per line
};

// Returns at most `most` rows in the order of the terms, with the sum at the end. Terms below 0.2 %
// of the step are added to the sum. The rows point into `predicted`, which must outlive them.
std::vector<BreakdownRow> breakdown_rows(const Prediction& predicted, std::size_t most);

// Returns the term of exposed communication that takes most time; null if there is none. Its inputs
// name the link: "16 ranks on 2 nodes; 1 such groups share 8 NICs per node".
const Term* largest_communication(const Prediction& predicted);

// Returns the term pipeline_bubble as a share of the step: time that the slowest stage waits for
// others.
double bubble_share(const Prediction& predicted);

}  // namespace tpsim::gui
