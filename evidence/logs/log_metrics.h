// Steps by the names of their numbers, whichever program wrote them: "Step 10 | tokens/sec:
// 419,430", {"step": 10, "step_time": 1.25}, and tables of comma-separated values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/logs/training_log.h"

namespace tpsim {

class MetricLines {
 public:
  // Whether the line says how long a step took, or belongs to a table of such.
  bool read(std::string_view line, TrainingLog& log);

 private:
  bool read_header(std::string_view line);
  bool read_row(std::string_view line, TrainingLog& log) const;

  std::vector<std::string> columns_;  // of the table that is being read; empty: of none
};

}  // namespace tpsim
