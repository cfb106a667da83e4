// Predicted time of every op and collective of one rank's step, at the profile's prices. This is
// the expected result of `tpsim run --rank`, and the predicted side of a comparison with recorded
// times.
#pragma once

#include "core/program/op_times.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim::app {

// Returns the predicted times of one rank, without time spent waiting for other ranks.
StepTimes predicted_times(const LayerPricer& pricer, const Plan& plan, std::int64_t rank);

}  // namespace tpsim::app
