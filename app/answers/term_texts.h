// Explains the terms of a step in text: formula, inputs, and source of the constants. `tpsim
// explain` and the window show them.
#pragma once

#include <array>
#include <string>

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "sim/layers/layer_cost.h"

namespace tpsim::app {

struct TermText {
  std::string formula;  // in words and symbols
  std::string inputs;   // values of the symbols for this plan
  std::string source;   // of the constants
};

// `transfer`: of LayerPricer::transfer() for the plan; not read if pp = 1.
TermText term_text(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                   const TransferCost& transfer, StepTerm term);

// Returns the texts of all terms, by StepTerm.
using TermTexts = std::array<TermText, kStepTerms.size()>;
TermTexts term_texts(const Scenario& scenario, const PlannedRun& run);

}  // namespace tpsim::app
