// Explains the terms of a step in text: name, formula, inputs, and source of the constants. `tpsim
// explain` prints them.
#pragma once

#include <vector>

#include "core/plan/report.h"
#include "sim/step/step.h"

namespace tpsim {

// Returns the terms in the order of StepTerm. Their times sum to cost.step.
std::vector<Term> explained_terms(LayerPricer& pricer, const Plan& plan, const StepCost& cost);

}  // namespace tpsim
