// Finds and reports unstated inputs of a prediction (plans/questions/open_inputs.h).
#pragma once

#include <set>
#include <span>
#include <string>

#include "cli/options/terminal.h"
#include "core/json/json_value.h"
#include "core/plan/plan_settings.h"
#include "core/plan/report.h"
#include "plans/questions/open_inputs.h"

namespace tpsim::cli {

class Arguments;
struct NamedScenario;

// Returns settings of a single plan that have default values. For a search only the batch, since it
// tries all other settings.
std::set<Setting> settings_left(const Arguments& arguments, bool has_file);

// Returns the inputs that neither an option nor a plan file states.
Result<OpenInputs> open_inputs(const NamedScenario& named);

// Widens the interval of every plan for unstated inputs. `named` gets the assumptions for the first
// plan.
Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads = 1);

// Returns the assumed inputs, and the interval's upper end if each were stated. Empty if all inputs
// are stated.
std::string assumed_view(const Terminal& terminal, const NamedScenario& named);
// Adds "assumed" to the report if inputs are unstated.
void add_assumed(JsonValue& report, const Assumed& assumed);

}  // namespace tpsim::cli
