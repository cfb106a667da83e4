// Reports of `--json` (docs/json.md). Each function returns one JSON object.
#pragma once

#include <cstdint>
#include <string>

#include "app/scenario/named_scenario.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "plans/search/search.h"

namespace tpsim::app {

// Returns the keys with which every report starts.
JsonValue report_head(const char* version, const NamedScenario& named, std::int64_t gpus);

// Returns a plan with its prediction, as in "plans" of the report.
JsonValue run_json(const PlannedRun& run);

// {"version": "tpsim-plan-report/1", ..., "plans": [...]}
JsonValue plan_report(const NamedScenario& named, const SearchSpace& space,
                      const SearchResult& found);

// "tpsim-simulate-report/1": one plan with its prediction, as in "plans" above.
JsonValue simulate_report(const NamedScenario& named, const PlannedRun& run);

// Adds "assumed" to a report if some inputs are not stated.
void add_assumed(JsonValue& report, const Assumed& assumed);
// Returns {"dispatcher": "deepep"}.
JsonValue parts_json(const PartValues& parts);

// Returns "fnv1a:0123456789abcdef", the hash of all inputs of a search.
std::string hash_text(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim::app
