// Reports of `--json` (docs/json.md). Each function returns one JSON object.
#pragma once

#include "cli/options/inputs.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "plans/search/search.h"
#include "sim/step/rank_programs.h"

namespace tpsim::cli {

// Returns a plan with its prediction, as in "plans" of the report.
JsonValue run_json(const PlannedRun& run);

// {"version": "tpsim-plan-report/1", ..., "plans": [...]}
JsonValue plan_report(const NamedScenario& named, const SearchSpace& space,
                      const SearchResult& found);

// "tpsim-simulate-report/1": one plan with its prediction, as in "plans" above.
JsonValue simulate_report(const NamedScenario& named, const PlannedRun& run);

// "tpsim-explain-report/1": one plan with its prediction, every term and the sources of numbers.
JsonValue explain_report(const NamedScenario& named, const PlannedRun& run);

// "tpsim-program-report/1": one plan with its prediction, and the program of a rank.
JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs);

// Returns a timeline in the Chrome trace event format for Perfetto and chrome://tracing. Each
// pipeline stage has a compute track with complete events in microseconds, and additional tracks
// for concurrent transfers.
std::string trace_json(const Timeline& timeline, std::string_view title);

}  // namespace tpsim::cli
