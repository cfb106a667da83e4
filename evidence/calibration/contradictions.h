// Finds measured steps that contradict the others, because of a bad node, a wrong unit, or a layout
// other than stated.
#pragma once

#include <cstddef>
#include <vector>

#include "evidence/calibration/calibration.h"

namespace tpsim {

// Returns the indices of outliers. The ratio is measured time over time predicted by a fit to the
// other rows. An outlier differs from the median ratio by more than 10 % and by more than four
// median deviations (scaled to a standard deviation). Empty for fewer than four steps.
std::vector<std::size_t> contradicting_steps(const std::vector<FittedStep>& steps);

}  // namespace tpsim
