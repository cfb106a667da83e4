// Reads the steps of any program by the names of its metrics. Lines may be plain text ("Step 10 |
// tokens/sec: 419,430"), JSON ({"step": 10, "step_time": 1.25}) or rows of a comma-separated table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/logs/training_log.h"

namespace tpsim {

class MetricLines {
 public:
  // Adds the step that the line states to `log`. Returns whether the line is a step or belongs to a
  // table with step times.
  bool read(std::string_view line, TrainingLog& log);

 private:
  bool read_header(std::string_view line);
  bool read_row(std::string_view line, TrainingLog& log) const;

  std::vector<std::string> columns_;  // of the table being read; empty: none
};

}  // namespace tpsim
