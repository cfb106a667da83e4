// Step times from progress bars, or from the elapsed time next to a step number.
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
  // Reads " 10/100 [01:20<12:00,  8.01s/it]" and "... 2.50it/s]". A redrawn bar counts each step
  // once.
  bool read_bar(std::string_view line);
  // Reads "'global_step/max_steps': '10/100', ... 'elapsed_time': '1m 20s'", and "current_steps":
  // 10.
  bool read_clock(std::string_view line);

  // Returns the steps of the bar that ran longest, since loading and evaluation draw bars too.
  // Without bars uses elapsed times. Empty if there is neither.
  std::vector<LoggedStep> steps() const;

 private:
  struct Bar {
    Seconds elapsed;
    std::vector<LoggedStep> steps;
  };
  std::map<std::int64_t, Bar> bars_;  // by the total number of steps
  std::vector<std::pair<std::int64_t, Seconds>> clock_;
};

}  // namespace tpsim
