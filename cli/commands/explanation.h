// The answer of `tpsim explain`, for the terminal and for `tpsim call`.
#pragma once

#include <optional>
#include <string>

#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"

namespace tpsim::cli {

// Report as JSON and as text, and the explained plan.
struct Explanation {
  JsonValue document;
  std::string text;
  PlanFile plan;
};

// Returns the explanation that the options request: every term of a plan, its program, or the
// answer to --why-not or --what-if.
Result<Explanation> explain(const Arguments& arguments, const std::optional<PlanFile>& file,
                            const Terminal& terminal);

}  // namespace tpsim::cli
