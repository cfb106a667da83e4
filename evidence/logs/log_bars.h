// Step times from progress bars, or from the elapsed time that is printed with a step number.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/logs/training_log.h"

namespace tpsim {

class DrawnSteps {
 public:
  // Reads " 10/100 [01:20<12:00,  8.01s/it]" and "... 2.50it/s]". A step counts once, even if the
  // bar is redrawn at this step.
  bool read_bar(std::string_view line);
  // Reads a step number with elapsed time: "'global_step/max_steps': '10/100', ... 'elapsed_time':
  // '1m 20s'", or with "current_steps": 10.
  bool read_clock(std::string_view line);

  // Returns the steps of the progress bar with the longest elapsed time, because model loading and
  // evaluation also draw bars. Without bars, returns steps from elapsed times. Empty if the log has
  // neither.
  std::vector<LoggedStep> steps() const;

 private:
  struct Bar {
    Seconds elapsed;
    std::vector<LoggedStep> steps;
  };
  std::map<std::int64_t, Bar> bars_;  // key: total number of steps
  std::vector<std::pair<std::int64_t, Seconds>> clock_;
};

}  // namespace tpsim
