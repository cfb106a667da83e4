// Probability that one plan is faster than another, for one model and machine.
#pragma once

#include "core/base/units.h"

namespace tpsim {

// Two such predictions share most of their error. The remainder is the standard deviation of the
// difference of their logarithmic errors. `tpsim validate --runs` prints it for tables with pairs
// of equal model, GPUs and batch; this is the median over tables.
inline constexpr double kPairSpread = 0.08;

// Probability that the plan predicted to take `a` is faster than the plan predicted to take `b`.
double probability_faster(Seconds a, Seconds b);
// Whether that probability is below 0.9.
bool is_tie(Seconds best, Seconds other);

}  // namespace tpsim
