// Unstated inputs of a prediction (plans/questions/open_inputs.h): how commands find and report
// them.
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

// Settings of a single plan that nobody chose; of a search its batch, since it tries all others.
std::set<Setting> settings_left(const Arguments& arguments, bool has_file);

// The inputs that neither an option nor a plan file states.
Result<OpenInputs> open_inputs(const NamedScenario& named);

// Widens the interval of every plan by what nobody stated, and notes in `named` what that is for
// the first plan.
Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads = 1);

// "software megatron-lm, network of dgx-a100; state the software (--stack): +14 % instead of
// +22 %"; empty where nothing is open.
std::string assumed_view(const Terminal& terminal, const NamedScenario& named);
// Adds it as "assumed" where something is open.
void add_assumed(JsonValue& report, const Assumed& assumed);

}  // namespace tpsim::cli
