// Joins a prediction and a measurement op by op and collective by collective.
#pragma once

#include <string>
#include <vector>

#include "core/program/op_times.h"

namespace tpsim::app {

// Predicted and measured seconds per step of one op, collective or kind of op.
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

// Joins the predicted and measured times of one step. Each list is sorted by decreasing absolute
// residual. An entry that only one side has counts zero on the other.
Comparison compare(const StepTimes& predicted, const StepTimes& measured);

// Returns the ops whose profile entries should be measured again, at most `most`: those whose
// absolute residual exceeds `share` of the step, largest first. Excludes ops shorter than
// `shortest`, because the overhead of timing is a large part of such times.
std::vector<ComparedTime> worth_measuring_again(const Comparison& comparison, Seconds step,
                                                double share, std::size_t most,
                                                Seconds shortest = Seconds());

}  // namespace tpsim::app
