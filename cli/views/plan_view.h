// A prediction as text for people: blocks of lines that the commands put together. Every block ends
// with a newline and fits 100 columns.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/options/inputs.h"
#include "cli/options/terminal.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim::cli {

std::string heading(const Terminal& terminal, std::string_view title, std::string_view note = "");

// "bloom-176b, 176.2 B parameters, on 384 GPUs of jean-zay-a100 ..."
std::string scenario_view(const Terminal& terminal, const NamedScenario& named, const Plan& plan);

// The plan in words: degrees, options, stages. "(default)" stands behind `left`, which nobody
// chose.
std::string plan_view(const Terminal& terminal, const Plan& plan,
                      const std::set<Setting>& left = {});

// Step time with its interval, model TFLOPs, memory against capacity, and whether the plan fits.
std::string headline_view(const Terminal& terminal, const Prediction& predicted);

// Step time with its interval, TFLOPs of both kinds, memory against capacity, what it rests on.
std::string prediction_view(const Terminal& terminal, const Prediction& predicted,
                            const Profile& profile);

// The largest `most` terms of the step as bars, and the rest as one line.
std::string breakdown_view(const Terminal& terminal, const Prediction& predicted, std::size_t most);

// Memory by stage and category. Of many stages the first, the last and those around the fullest.
std::string memory_view(const Terminal& terminal, const Prediction& predicted, std::size_t most);

// What a search had least of beside time and memory, a cell for each plan.
struct UsedColumns {
  struct Column {
    std::string title;
    std::vector<std::string> cells;
  };
  std::vector<Column> columns;
  std::string note;  // behind the heading
};

// For the ranking of what was found by cost or energy; no columns for time and memory, whose own
// are there. A cluster whose price or power nobody states (data/campaigns) has GPU-hours alone.
UsedColumns used_columns(const NamedScenario& named, const SearchSpace& space,
                         const SearchResult& found);

// Plans side by side, best first. Those whose step lies within the interval of the best one's may
// be marked as ties. Where something else than time was least, fewer GPUs may be used: how many
// stands beside.
std::string ranking_view(const Terminal& terminal, std::span<const PlannedRun> runs,
                         bool marks_ties, const UsedColumns& used = {});

// Which share of the device time came from where: "82 % exact entries, 12 % interpolated, ..."
std::string sources_text(const Sources& sources);

// "fnv1a:0123456789abcdef": of all that a search's answer depends on.
std::string hash_text(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim::cli
