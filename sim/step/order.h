// How sure the order of two plans of one model on one machine is.
#pragma once

#include "core/base/units.h"

namespace tpsim {

// Two such predictions share most of their error. What is left between them, the difference of
// their logarithmic errors, `tpsim validate --runs` prints for tables that have pairs of one model,
// GPUs and batch; this is the middle one of them.
inline constexpr double kPairSpread = 0.08;

// That a plan predicted to take `a` is faster than one predicted to take `b`.
double probability_faster(Seconds a, Seconds b);
// Less than nine of ten sure.
bool is_tie(Seconds best, Seconds other);

}  // namespace tpsim
