// What `--json` prints: the documents of docs/json.md.
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

// One plan with its prediction, as in "plans" above, under "tpsim-simulate-report/1".
JsonValue simulate_report(const NamedScenario& named, const PlannedRun& run);

// The same with every term and where the numbers come from: "tpsim-explain-report/1".
JsonValue explain_report(const NamedScenario& named, const PlannedRun& run);

// The plan with its prediction and what a rank runs: "tpsim-program-report/1".
JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs);

// A timeline in the Chrome trace event format, which Perfetto and chrome://tracing open: one track
// for each pipeline stage with complete events in microseconds. Transfers overlap what a stage
// computes, so they have tracks of their own below it, as many as run at once.
std::string trace_json(const Timeline& timeline, std::string_view title);

}  // namespace tpsim::cli
