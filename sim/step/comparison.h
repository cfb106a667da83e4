// A prediction and a measurement, joined op by op and collective by collective.
#pragma once

#include <string>
#include <vector>

#include "core/program/op_times.h"

namespace tpsim {

// Seconds per step of one thing that both sides have.
struct ComparedTime {
  std::string what;
  std::int64_t count = 0;  // of its runs, in one step
  Seconds predicted;
  Seconds measured;

  Seconds residual() const { return predicted - measured; }
  // Predicted over measured, less one; 0 where nothing was measured.
  double error() const;
};

struct Comparison {
  std::vector<ComparedTime> kinds;        // ops by kind
  std::vector<ComparedTime> ops;          // by key
  std::vector<ComparedTime> collectives;  // by kind, group and size
};

// Both sides of one step; each list with its largest residual first. What only one side knows is
// compared with nothing.
Comparison compare(const StepTimes& predicted, const StepTimes& measured);

// The ops whose entries in the profile explain a step that is off: those with residuals above
// `share` of the step, at most `most`, largest first. Ops that take less than `shortest` are left
// to their kind: what stands around each to time it is a part of so short a time.
std::vector<ComparedTime> worth_measuring_again(const Comparison& comparison, Seconds step,
                                                double share, std::size_t most,
                                                Seconds shortest = Seconds());

}  // namespace tpsim
