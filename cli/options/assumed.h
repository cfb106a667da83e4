// Inputs that a prediction needs and the user did not state (plans/questions/open_inputs.h). They
// widen the interval of the prediction.
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

// Returns the settings that the user left at their defaults. For a search this is at most the
// global batch, since the search tries all values of the other settings. Empty with a plan file.
std::set<Setting> settings_left(const Arguments& arguments, bool has_file);

// Returns the inputs that neither options nor the plan file state.
Result<OpenInputs> open_inputs(const NamedScenario& named);

// Widens the interval of every plan by the effect of unstated inputs. Stores the assumed values for
// the first plan in `named`.
Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads = 1);

// Returns a text with the assumed inputs, and how far stating each lowers the interval's upper end.
// Empty if all inputs are stated.
std::string assumed_view(const Terminal& terminal, const NamedScenario& named);
// Adds the field "assumed" to the report if some inputs are not stated.
void add_assumed(JsonValue& report, const Assumed& assumed);

}  // namespace tpsim::cli
