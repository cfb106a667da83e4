// A prediction as text: blocks of lines that commands combine. Every block ends with a newline and
// fits 100 columns.
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

// Returns "bloom-176b, 176.2 B parameters, on 384 GPUs of jean-zay-a100 ...".
std::string scenario_view(const Terminal& terminal, const NamedScenario& named, const Plan& plan);

// Returns the plan's degrees, options and stages. Settings in `left` are marked "(default)".
std::string plan_view(const Terminal& terminal, const Plan& plan,
                      const std::set<Setting>& left = {});

// Returns step time with interval, model TFLOP/s, memory and capacity, and whether the plan fits.
std::string headline_view(const Terminal& terminal, const Prediction& predicted);

// Returns step time with interval, both kinds of TFLOP/s, memory and capacity, and the sources of
// the prediction.
std::string prediction_view(const Terminal& terminal, const Prediction& predicted,
                            const Profile& profile);

// Returns the `most` largest terms of the step as bars, and the rest as one line.
std::string breakdown_view(const Terminal& terminal, const Prediction& predicted, std::size_t most);

// Returns memory by stage and category. Of many stages only some are shown, including the first,
// the last and the fullest.
std::string memory_view(const Terminal& terminal, const Prediction& predicted, std::size_t most);

// Additional columns of a ranking by cost or energy, with a cell per plan.
struct UsedColumns {
  struct Column {
    std::string title;
    std::vector<std::string> cells;
  };
  std::vector<Column> columns;
  std::string note;  // follows the heading
};

// Returns columns for searches by cost or energy. Searches by time and memory need no additional
// columns. GPU-hours only, if price or power of the cluster are unknown (data/campaigns).
UsedColumns used_columns(const NamedScenario& named, const SearchSpace& space,
                         const SearchResult& found);

// Returns a table of plans, best first. With `marks_ties`, plans within the best plan's interval
// are marked as ties. Searches for other objectives also show the number of GPUs.
std::string ranking_view(const Terminal& terminal, std::span<const PlannedRun> runs,
                         bool marks_ties, const UsedColumns& used = {});

// Returns the shares of device time by source: "82 % exact entries, 12 % interpolated, ...".
std::string sources_text(const Sources& sources);

// Returns "fnv1a:0123456789abcdef", the hash of all inputs of a search.
std::string hash_text(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim::cli
