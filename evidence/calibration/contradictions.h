// Finds measured steps that contradict the others, for example because of a bad node, a wrong unit,
// or a layout that is not the stated one.
#pragma once

#include <cstddef>
#include <vector>

#include "evidence/calibration/calibration.h"

namespace tpsim {

// Returns the indices of outliers; empty for fewer than four steps. Each step has the ratio of its
// measured time to the time predicted by a fit to the other rows. An outlier differs from the
// median ratio by more than 10 %, and by more than four times the median absolute deviation (scaled
// to a standard deviation).
std::vector<std::size_t> contradicting_steps(const std::vector<FittedStep>& steps);

}  // namespace tpsim
