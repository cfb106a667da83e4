// Joins a prediction and a measurement op by op and collective by collective.
#pragma once

#include <string>
#include <vector>

#include "core/program/op_times.h"

namespace tpsim {

// Seconds per step of one entry.
struct ComparedTime {
  std::string what;
  std::int64_t count = 0;  // runs per step
  Seconds predicted;
  Seconds measured;

  Seconds residual() const { return predicted - measured; }
  // Predicted / measured - 1; 0 without a measurement.
  double error() const;
};

struct Comparison {
  std::vector<ComparedTime> kinds;        // ops by kind
  std::vector<ComparedTime> ops;          // by key
  std::vector<ComparedTime> collectives;  // by kind, group and size
};

// Joins both sides of one step; each list is sorted by decreasing residual. An entry on one side
// only has zero on the other.
Comparison compare(const StepTimes& predicted, const StepTimes& measured);

// Returns the ops whose profile entries explain the residual of a step: residuals above `share` of
// the step, largest first, at most `most`. Ops shorter than `shortest` are excluded, since the
// overhead of timing each is part of such short times.
std::vector<ComparedTime> worth_measuring_again(const Comparison& comparison, Seconds step,
                                                double share, std::size_t most,
                                                Seconds shortest = Seconds());

}  // namespace tpsim
