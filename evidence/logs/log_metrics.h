// Reads steps of any program by the names of its metrics: "Step 10 | tokens/sec: 419,430", {"step":
// 10, "step_time": 1.25}, and comma-separated tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/logs/training_log.h"

namespace tpsim {

class MetricLines {
 public:
  // Returns whether the line has a step time, or belongs to a table with step times.
  bool read(std::string_view line, TrainingLog& log);

 private:
  bool read_header(std::string_view line);
  bool read_row(std::string_view line, TrainingLog& log) const;

  std::vector<std::string> columns_;  // of the current table; empty: no table
};

}  // namespace tpsim
