// tpsim explain --why-not and --what-if: other plans, other machines, other shapes.
#pragma once

#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "core/report.h"
#include "core/result.h"

namespace tpsim {

// Compares the best plan of the search that the options describe with the best that has what
// --why-not asks for.
Status explain_why_not(const Arguments& arguments, const NamedScenario& named,
                       const Terminal& terminal);

// Sensitivities and shape advice of a plan; break-even points where --gpus says what to search.
Status explain_what_if(const Arguments& arguments, const NamedScenario& named,
                       const PlannedRun& run, const Terminal& terminal);

}  // namespace tpsim
