// Documents of `--json` (docs/json.md).
#pragma once

#include "cli/options/inputs.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "plans/search/search.h"
#include "sim/step/rank_programs.h"

namespace tpsim::cli {

// A plan with its prediction.
JsonValue run_json(const PlannedRun& run);

// {"version": "tpsim-plan-report/1", ..., "plans": [...]}
JsonValue plan_report(const NamedScenario& named, const SearchSpace& space,
                      const SearchResult& found);

// One plan with its prediction, as in "plans" above: "tpsim-simulate-report/1".
JsonValue simulate_report(const NamedScenario& named, const PlannedRun& run);

// Likewise, with every term and the sources of its numbers: "tpsim-explain-report/1".
JsonValue explain_report(const NamedScenario& named, const PlannedRun& run);

// The plan with its prediction and a rank's events: "tpsim-program-report/1".
JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs);

// Returns a timeline in the Chrome trace event format for Perfetto and chrome://tracing. Each
// pipeline stage has a track with complete events in microseconds. Concurrent transfers have
// additional tracks below.
std::string trace_json(const Timeline& timeline, std::string_view title);

}  // namespace tpsim::cli
