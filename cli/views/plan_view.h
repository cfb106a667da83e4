// Parts of reports about a prediction. Lines have at most 100 columns.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/scenario/named_scenario.h"
#include "cli/options/options.h"
#include "cli/options/text_report.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim::cli {

// Writes "bloom-176b, 176.2 B parameters, on 384 GPUs of jean-zay-a100 ...".
void write_scenario(TextReport& out, const NamedScenario& named, const Plan& plan);

// Writes the plan's degrees, options and stages. Settings in `left` have default values and are
// marked "(default)".
void write_plan(TextReport& out, const Plan& plan, const std::set<Setting>& left = {});

// Writes step time with interval, model TFLOP/s, used and available memory, and whether the plan
// fits.
void write_headline(TextReport& out, const Prediction& predicted);

// Writes step time with interval, hardware and model TFLOP/s, used and available memory, and the
// sources of the kernel times.
void write_prediction(TextReport& out, const Prediction& predicted, const Profile& profile);

// Writes the nodes that a scheduler gave with their ranks, and the step on equal nodes; nothing
// without --nodes.
void write_allocation(TextReport& out, const NamedScenario& named, const PlannedRun& run);

// Writes the assumed inputs, and how far stating each lowers the interval's upper end; nothing if
// all inputs are stated.
void write_assumed(TextReport& out, const NamedScenario& named);
// States how sure the choice of the best plan is, and what would make it surer. Nothing if `named`
// has no risk.
void write_choice(TextReport& out, const NamedScenario& named);

// Returns "a global batch of 1,008 takes 1.33 s on 1,008 GPUs, 3,104,000 tokens/s".
std::string batch_text(const PlannedRun& run);

// Writes "dispatcher=deepep 10.2 s, dispatcher=alltoall 11.4 s"; nothing if no part was searched.
void write_tried(TextReport& out, const NamedScenario& named);

// Writes the `most` largest terms of the step as bars, and the sum of the others as one line.
void write_breakdown(TextReport& out, const Prediction& predicted, std::size_t most);

// Writes a table of memory by stage and category. Shows at most `most` stages, including the first,
// the last and the fullest.
void write_memory(TextReport& out, const Prediction& predicted, std::size_t most);

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

// Writes a table of plans, best first. `marks_ties`: marks plans that may be as fast as the best
// plan (is_tie). Objectives other than time also show the number of GPUs.
void write_ranking(TextReport& out, std::span<const PlannedRun> runs, bool marks_ties,
                   const UsedColumns& used = {});

// Writes commands that continue from the saved plan: NEXT.
void write_next(TextReport& out, const Arguments& arguments, const NamedScenario& named,
                const PlannedRun& best);

}  // namespace tpsim::cli
