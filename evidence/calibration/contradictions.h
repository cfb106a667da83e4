// Measured steps that contradict the others: a run on a bad node, a wrong unit, another layout than
// the row states.
#pragma once

#include <cstddef>
#include <vector>

#include "evidence/calibration/calibration.h"

namespace tpsim {

// Indices of the steps whose ratio of measured time to the time predicted by a fit to the other
// rows is off the median ratio by more than 10 % and by more than four times the median deviation
// (as a standard deviation). Empty for fewer than four steps.
std::vector<std::size_t> contradicting_steps(const std::vector<FittedStep>& steps);

}  // namespace tpsim
