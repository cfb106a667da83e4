// Results computed from the state: scenario, plans, predictions, timelines. Results are recomputed
// only if their inputs have changed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/model_index.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"
#include "gui/views/app_state.h"
#include "gui/views/choice.h"
#include "gui/views/knob_values.h"
#include "gui/views/search_job.h"
#include "gui/views/stage_bands.h"
#include "gui/views/timeline_layout.h"
#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim::gui {

// One measured run with its prediction, from the report of `tpsim validate --runs FILE --json`
// (docs/json.md).
struct MeasuredRow {
  std::string id;
  double measured = 0, predicted = 0, low = 0, high = 0;  // seconds
};

// Error figures of a group of rows, as printed by `tpsim validate --runs`. Fractions, not percent.
struct MeasuredFigures {
  std::int64_t rows = 0;
  double mean_error = 0;  // mean of |predicted / measured - 1|
  double coverage = 0;    // share of runs inside their 90 % intervals
};

struct MeasuredRuns {
  std::vector<MeasuredRow> rows;  // rows that count and have both times
  std::size_t skipped = 0;        // number of other rows
  MeasuredFigures tested;         // rows that no constant was fitted to
  MeasuredFigures fitted;
  std::optional<Error> error;  // reason why the file cannot be read
};

// Reads the report. If the file is faulty, the result only has `error`.
MeasuredRuns read_measured_runs(const std::string& file);

// Predicted cost of a training run with one plan.
struct RunCost {
  double tokens = 0;  // length of the training run; 0: not computed yet
  Seconds wall;       // elapsed time with checkpoints, failures and downtime
  // Price of the reserved GPU-hours, and at both ends of the step's 90 % interval.
  double usd = 0, usd_low = 0, usd_high = 0;
  std::int64_t spare_nodes = 0;  // included in the price
  std::string price;             // "2 USD/h, judgement: rented for about 1.5 to 4 USD"
  std::string missing = {};      // reason why the cost is unknown; empty if known
};

// A plan with its prediction and timeline.
struct PlanView {
  Plan plan;
  std::shared_ptr<const Scenario> scenario;
  std::optional<Error> error;  // reason why the plan cannot run; no results then
  Prediction predicted;
  PlanCosts costs;
  Timeline timeline;
  TimelineIndex index;
  std::vector<std::uint32_t> critical_path;
  double end = 0;  // end of the timeline in seconds
  // Step times for alternatives of the unstated inputs, as far as predicted. The interval is
  // complete after all alternatives are predicted (has_interval).
  OpenSteps open_steps;
  bool has_interval = false;
  Assumed assumed;
  RunCost cost;
};

// A stack of the catalogue.
struct StackEntry {
  std::string name;
  std::string refusal;  // why the stack cannot run the model; empty if it can
};

struct Views {
  std::vector<ModelEntry> models;  // grouped by family; empty if one cannot be read
  std::vector<std::string> clusters;
  std::vector<StackEntry> stacks;
  std::shared_ptr<const Scenario> scenario;  // null if the choice cannot be loaded
  ScenarioNames names;                       // names of the scenario's parts
  Unstated unstated;
  std::int64_t global_batch = 0;
  std::optional<Error> error;  // reason why the choice cannot be loaded
  Findings found;
  bool is_searching = false;
  bool is_stopped = false;  // the user stopped the search
  double progress = 0;      // completed share of the search
  bool is_pricing = false;  // some alternatives of unstated inputs are not predicted yet
  bool is_stale = false;    // `found` and the plans belong to previous inputs
  std::shared_ptr<const PlanView> a, b;     // plans A and B; null: none
  std::shared_ptr<const StageBands> bands;  // of plan A's chosen stage; null if none is chosen
  // Values of each setting that has a control, for plan A with the present scenario.
  std::map<Setting, std::vector<KnobValue>> knobs;
  std::shared_ptr<const MeasuredRuns> measured;
};

class ViewComputer {
 public:
  ViewComputer(Catalogue catalogue, SearchHost& host);
  ~ViewComputer();

  // Returns the results for `state`. Plans are predicted in this call, which takes milliseconds. A
  // search runs in the host: its findings, and widened intervals, are returned by later calls.
  const Views& views(const AppState& state);

  // Stops the search and keeps its results, or starts the search again.
  void stop_search();
  void search();

  // Returns plan A as a plan file, as used by Save, Export and the command line.
  std::optional<PlanFile> plan_file() const;
  // Whether plan A fits in memory, by the rule of `tpsim simulate`.
  bool fits() const;
  // Whether the catalogue has this model under its name. Sequence length and attention dropout may
  // differ, since command-line options state them.
  bool is_in_catalogue(const ModelSpec& model) const;
  // Returns the cluster that plans are predicted for; null without a scenario.
  const ClusterSpec* cluster() const {
    return views_.scenario ? &views_.scenario->cluster : nullptr;
  }
  // Returns the stack that plans are predicted with.
  StackSpec stack() const { return views_.scenario ? views_.scenario->stack : StackSpec{}; }

 private:
  void load_choice(const Choice& choice);
  void judge_stacks();
  Status load(const Choice& choice);
  void look_at(const AppState& state);
  void update_knobs();
  void update_bands(std::int64_t stage);
  void clear_findings();
  void take(SearchNews news);
  void read_measured(const std::string& file);
  std::shared_ptr<PlanView> view_of(const Plan& plan, const std::shared_ptr<PlanView>& before);
  bool price_next(PlanView* view);
  void add_cost(PlanView* view, double tokens) const;

  Catalogue catalogue_;
  std::vector<StackSpec> stacks_;  // of the catalogue
  SearchHost& host_;
  std::optional<Choice> loaded_;
  bool awaits_news_ = false;  // the search has not returned results yet
  std::unique_ptr<LayerPricer> pricer_;
  OpenInputs open_;
  std::shared_ptr<PlanView> a_, b_;  // plans A and B of views_
  // Inputs of views_.knobs.
  std::shared_ptr<const PlanView> knobs_plan_;
  std::shared_ptr<const Scenario> knobs_scenario_;
  std::shared_ptr<const PlanView> bands_plan_;  // of views_.bands
  std::string measured_file_;
  Views views_;
};

}  // namespace tpsim::gui
