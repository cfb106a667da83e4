// Predictions beside measurements: the report that `tpsim validate --runs FILE --json` prints
// (docs/json.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace tpsim::gui {

struct MeasuredRow {
  std::string id;
  double measured = 0, predicted = 0, low = 0, high = 0;  // seconds
};

struct MeasuredRuns {
  std::vector<MeasuredRow> rows;  // those with both times
  double mean_error = 0;          // mean of |predicted / measured - 1|
  std::size_t inside = 0;         // rows whose interval holds the measurement
  std::optional<Error> error;     // why the file could not be read
};

// Never fails: what is wrong with the file is in `error`.
MeasuredRuns read_measured_runs(const std::string& file);

}  // namespace tpsim::gui
