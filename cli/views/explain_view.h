// Explanations of `tpsim explain` as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/answers/explain_answers.h"
#include "app/answers/memory_answer.h"
#include "app/answers/program_difference.h"
#include "app/answers/run_answers.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "sim/step/rank_programs.h"

namespace tpsim::cli {

// Returns every term of a prediction with formula, inputs and source.
std::string explanation_text(const Terminal& terminal, const NamedScenario& named,
                             const PlannedRun& run);
// Returns the measurements of a row of a run table.
std::string row_view(const Terminal& terminal, const ExplainedRow& row);

// Lists every op, collective and allocation of a rank, grouped by part of the model.
std::string program_text(const Terminal& terminal, const NamedScenario& named,
                         const PlannedRun& run, const std::vector<PartProgram>& programs);

// Lists the differences between the programs of two plans.
std::string program_difference_text(const Terminal& terminal, const NamedScenario& named,
                                    const PlannedRun& run, const SimulatedPlan& other,
                                    const std::vector<PartDifference>& parts);

// Lists the contents of the fullest stage's memory at its peak; with a snapshot of a run, those of
// the rank's stage and the comparison.
std::string memory_text(const Terminal& terminal, const NamedScenario& named, const PlannedRun& run,
                        const MemoryAnswer& answer);

std::string why_not_text(const Terminal& terminal, const WhyNotAnswer& all);
std::string what_if_text(const Terminal& terminal, const WhatIfAnswer& answers);

}  // namespace tpsim::cli
