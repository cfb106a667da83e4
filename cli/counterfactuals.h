// tpsim explain, and its --why-not and --what-if: other plans, other machines, other shapes. For
// the command and for the Python module.
#pragma once

#include <optional>
#include <string>

#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/plan_file.h"
#include "core/report.h"
#include "core/result.h"

namespace tpsim::cli {

// What `tpsim explain` says, in both forms, and the plan that it speaks of.
struct Explanation {
  JsonValue document;
  std::string text;
  PlanFile plan;
};

// By the options: every term of a plan, or an answer to --why-not or --what-if.
Result<Explanation> explain_answer(const Arguments& arguments, const std::optional<PlanFile>& file,
                                   const Terminal& terminal);

// Compares the best plan of the search that the options describe with the best that has what
// --why-not asks for.
Result<Explanation> explain_why_not(const Arguments& arguments, const NamedScenario& named,
                                    const Terminal& terminal);

// Sensitivities and shape advice of a plan; break-even points where --gpus says what to search.
Result<Explanation> explain_what_if(const Arguments& arguments, const NamedScenario& named,
                                    const PlannedRun& run, const Terminal& terminal);

}  // namespace tpsim::cli
