// Probability that one plan is faster than another, for the same model and machine.
#pragma once

#include "core/base/units.h"

namespace tpsim {

// Standard deviation of the difference between the log errors of two predictions. It is small
// because predictions for the same model and machine share most of their error. The value is the
// median over tables of runs: `tpsim validate --runs` prints it for tables with pairs of equal
// model, GPUs and batch.
inline constexpr double kPairSpread = 0.08;

// Returns the probability that a plan with predicted step `a` is faster than one with predicted
// step `b`.
double probability_faster(Seconds a, Seconds b);
// Returns whether the probability that `best` is faster is below 0.9.
bool is_tie(Seconds best, Seconds other);

}  // namespace tpsim
