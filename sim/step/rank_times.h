// Predicted times of one rank's step by op, at the profile's prices. The expected result of `tpsim
// run --rank`, and the predicted side of a comparison with recorded times.
#pragma once

#include "core/program/op_times.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Excludes waiting for other ranks.
StepTimes predicted_times(const LayerPricer& pricer, const Plan& plan, std::int64_t rank);

}  // namespace tpsim
