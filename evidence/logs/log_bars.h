// Steps that a program does not time itself: its progress bar does, or the time since its start
// that stands beside a step.
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
  // " 10/100 [01:20<12:00,  8.01s/it]" and "... 2.50it/s]": a bar that is redrawn says a step once.
  bool read_bar(std::string_view line);
  // "'global_step/max_steps': '10/100', ... 'elapsed_time': '1m 20s'", and "current_steps": 10.
  bool read_clock(std::string_view line);

  // Of the bar that ran longest, since loading and evaluation draw bars too; without one, what the
  // clock says. Empty where there is neither.
  std::vector<LoggedStep> steps() const;

 private:
  struct Bar {
    Seconds elapsed;
    std::vector<LoggedStep> steps;
  };
  std::map<std::int64_t, Bar> bars_;  // by how many steps they go to
  std::vector<std::pair<std::int64_t, Seconds>> clock_;
};

}  // namespace tpsim
