// The step of one rank by itself, op by op, at the profile's prices: what `tpsim run --rank` should
// measure, and the predicted side of a comparison with recorded times.
#pragma once

#include "core/program/op_times.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Waiting for other ranks is not in it.
StepTimes predicted_times(const LayerPricer& pricer, const Plan& plan, std::int64_t rank);

}  // namespace tpsim
