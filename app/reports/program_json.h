// Reports of `explain` as JSON (docs/json.md).
#pragma once

#include <vector>

#include "app/answers/memory_answer.h"
#include "app/answers/plan_answers.h"
#include "app/answers/program_difference.h"
#include "app/scenario/named_scenario.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "sim/step/rank_programs.h"

namespace tpsim::app {

// "tpsim-explain-report/1": one plan with its prediction, every term and the sources of numbers.
JsonValue explain_report(const NamedScenario& named, const PlannedRun& run);

// "tpsim-program-report/1": one plan with its prediction, and the program of a rank.
JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs);

// "tpsim-program-difference-report/1": the differences of a plan's program after two passes, or of
// the programs of two plans with their predictions.
JsonValue pass_difference_report(const NamedScenario& named, const PlannedRun& run,
                                 const ComparedPasses& passes,
                                 const std::vector<PartDifference>& parts);
JsonValue program_difference_report(const NamedScenario& named, const PlannedRun& run,
                                    const SimulatedPlan& other,
                                    const std::vector<PartDifference>& parts);

// "tpsim-memory-report/1": one plan with its prediction, and what each stage's memory contains at
// its peak.
JsonValue memory_report(const NamedScenario& named, const PlannedRun& run,
                        const MemoryAnswer& answer);

}  // namespace tpsim::app
