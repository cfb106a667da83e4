// The terms of a step as text: name, formula, inputs, and source of the constants. Printed by
// `tpsim explain`.
#pragma once

#include <span>
#include <vector>

#include "core/plan/report.h"
#include "sim/step/step.h"

namespace tpsim {

// In the order of StepTerm; the times sum to cost.step.
std::vector<Term> explained_terms(LayerPricer& pricer, const Plan& plan, const StepCost& cost);

// The software parts that affect the term.
std::span<const StackPart> options_affecting(StepTerm term);

}  // namespace tpsim
