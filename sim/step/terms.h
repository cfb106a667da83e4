// A step's terms in words: the stable name, the formula, the numbers that went in, and the source
// of the constants. What `tpsim explain` prints.
#pragma once

#include <span>
#include <vector>

#include "core/plan/report.h"
#include "sim/step/step.h"

namespace tpsim {

// In the order of StepTerm; the times add up to cost.step.
std::vector<Term> explained_terms(LayerPricer& pricer, const Plan& plan, const StepCost& cost);

// The parts of the software whose choice changes the term.
std::span<const StackPart> options_affecting(StepTerm term);

}  // namespace tpsim
