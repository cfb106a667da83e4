// Parts of reports about a prediction, as text. Each function returns lines of at most 100 columns
// that end with a newline.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/scenario/named_scenario.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim::cli {

std::string heading(const Terminal& terminal, std::string_view title, std::string_view note = "");

// Returns "bloom-176b, 176.2 B parameters, on 384 GPUs of jean-zay-a100 ...".
std::string scenario_view(const Terminal& terminal, const NamedScenario& named, const Plan& plan);

// Returns the plan's degrees, options and stages. Settings in `left` have default values and are
// marked "(default)".
std::string plan_view(const Terminal& terminal, const Plan& plan,
                      const std::set<Setting>& left = {});

// Returns step time with interval, model TFLOP/s, used and available memory, and whether the plan
// fits.
std::string headline_view(const Terminal& terminal, const Prediction& predicted);

// Returns step time with interval, hardware and model TFLOP/s, used and available memory, and the
// sources of the kernel times.
std::string prediction_view(const Terminal& terminal, const Prediction& predicted,
                            const Profile& profile);

// Returns a text with the assumed inputs, and how far stating each lowers the interval's upper end.
// Empty if all inputs are stated.
std::string assumed_view(const Terminal& terminal, const NamedScenario& named);

// Returns "dispatcher=deepep 10.2 s, dispatcher=alltoall 11.4 s"; empty if no part was searched.
std::string tried_view(const Terminal& terminal, const NamedScenario& named);

// Returns the `most` largest terms of the step as bars, and the sum of the others as one line.
std::string breakdown_view(const Terminal& terminal, const Prediction& predicted, std::size_t most);

// Returns a table of memory by stage and category. Shows at most `most` stages, including the
// first, the last and the fullest.
std::string memory_view(const Terminal& terminal, const Prediction& predicted, std::size_t most);

// Additional columns of the ranking if the objective is cost or energy, with one cell per plan.
struct UsedColumns {
  struct Column {
    std::string title;
    std::vector<std::string> cells;
  };
  std::vector<Column> columns;
  std::string note;  // appended to the heading
};

// If the objective is cost or energy, returns its value per billion tokens, or GPU-hours if the
// price or power of the cluster is unknown (data/campaigns). Otherwise returns no columns.
UsedColumns used_columns(const NamedScenario& named, const SearchSpace& space,
                         const SearchResult& found);

// Returns a table of plans, best first. `marks_ties`: marks plans that may be as fast as the best
// plan (is_tie). Objectives other than time also show the number of GPUs.
std::string ranking_view(const Terminal& terminal, std::span<const PlannedRun> runs,
                         bool marks_ties, const UsedColumns& used = {});

// Returns the shares of device time by source of the kernel times: "kernel times: 82 % measured at
// this size, 12 % interpolated, 6 % analytical".
std::string sources_text(const Sources& sources);

}  // namespace tpsim::cli
