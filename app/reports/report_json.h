// Reports of `--json` (docs/json.md). Each function returns one JSON object.
#pragma once

#include <span>

#include "app/answers/memory_answer.h"
#include "app/answers/plan_answers.h"
#include "app/answers/program_difference.h"
#include "app/scenario/named_scenario.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "plans/search/search.h"
#include "sim/memory/peak_memory.h"
#include "sim/step/rank_programs.h"

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

// "tpsim-explain-report/1": one plan with its prediction, every term and the sources of numbers.
JsonValue explain_report(const NamedScenario& named, const PlannedRun& run);

// "tpsim-program-report/1": one plan with its prediction, and the program of a rank.
JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs);

// "tpsim-program-difference-report/1": two plans with their predictions, and the differences of
// their programs.
JsonValue program_difference_report(const NamedScenario& named, const PlannedRun& run,
                                    const SimulatedPlan& other,
                                    const std::vector<PartDifference>& parts);

// "tpsim-memory-report/1": one plan with its prediction, and what each stage's memory contains at
// its peak.
JsonValue memory_report(const NamedScenario& named, const PlannedRun& run,
                        const MemoryAnswer& answer);

// Adds "assumed" to a report if some inputs are not stated.
void add_assumed(JsonValue& report, const Assumed& assumed);
// Returns {"dispatcher": "deepep"}.
JsonValue parts_json(const PartValues& parts);

// Returns "fnv1a:0123456789abcdef", the hash of all inputs of a search.
std::string hash_text(const Scenario& scenario, const SearchSpace& space);

// Returns {"kind", "exit_code", "text", "message", "where", "hint"}. `text` is the error as
// commands print it on stderr, made of the three parts after it.
JsonValue error_json(const Error& error);

// "tpsim-error-report/1": the same keys after the version.
JsonValue error_report(const Error& error);

// Returns a timeline in the Chrome trace event format for Perfetto and chrome://tracing. Each
// pipeline stage has a compute track with complete events in microseconds, and additional tracks
// for concurrent transfers, and a counter of its tensors by category. `memory`: by stage.
std::string trace_json(const Timeline& timeline, std::span<const MemorySamples> memory,
                       std::string_view title);

}  // namespace tpsim::app
