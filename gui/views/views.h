// Views computed from the state: scenario, plans, predictions, timelines. Recomputed only if their
// inputs have changed.
#pragma once

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
#include "gui/views/search_job.h"
#include "gui/views/timeline_layout.h"
#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim::gui {

// Predictions and measurements, from the report of `tpsim validate --runs FILE --json`
// (docs/json.md).
struct MeasuredRow {
  std::string id;
  double measured = 0, predicted = 0, low = 0, high = 0;  // seconds
};

// Figures of a group of rows, as `tpsim validate --runs` prints them. Shares, not percent.
struct MeasuredFigures {
  std::int64_t rows = 0;
  double mean_error = 0;  // of |predicted / measured - 1|
  double coverage = 0;    // of the 90 % intervals
};

struct MeasuredRuns {
  std::vector<MeasuredRow> rows;  // rows that count, with both times
  std::size_t skipped = 0;        // other rows
  MeasuredFigures tested;         // rows on which no constant was fitted
  MeasuredFigures fitted;
  std::optional<Error> error;  // reason why the file could not be read
};

// Reads the report. A fault in the file is returned in `error`.
MeasuredRuns read_measured_runs(const std::string& file);

// Cost of a training run with one plan.
struct RunCost {
  double tokens = 0;         // length of the run; 0: not computed yet
  Seconds wall;              // with checkpoints, failures and downtime
  double usd = 0;            // of the reserved GPU-hours
  std::string missing = {};  // why the cost is unknown; empty if known
};

// Details of one plan.
struct PlanView {
  Plan plan;
  std::shared_ptr<const Scenario> scenario;
  std::optional<Error> error;  // reason why the plan cannot run; the rest is then empty
  Prediction predicted;
  PlanCosts costs;
  Timeline timeline;
  TimelineIndex index;
  std::vector<std::uint32_t> critical_path;
  double end = 0;  // end of the timeline in seconds
  // Steps for the unstated inputs priced so far. The interval is too narrow until all are priced.
  OpenSteps open_steps;
  bool has_interval = false;
  Assumed assumed;
  RunCost cost;
};

struct Views {
  std::vector<ModelEntry> models;  // grouped by family; empty if one cannot be read
  std::vector<std::string> clusters;
  std::shared_ptr<const Scenario> scenario;  // null if the choice cannot be loaded
  ScenarioNames names;                       // names of the scenario's parts
  Unstated unstated;
  std::int64_t global_batch = 0;
  std::optional<Error> error;  // reason why the choice cannot be loaded
  Findings found;
  bool is_searching = false;
  bool is_pricing = false;               // intervals are still being widened
  bool is_stale = false;                 // `found` and the plans belong to an earlier choice
  std::shared_ptr<const PlanView> a, b;  // null if there is no plan
  std::shared_ptr<const MeasuredRuns> measured;
};

class ViewComputer {
 public:
  ViewComputer(Catalogue catalogue, SearchHost& host);
  ~ViewComputer();

  // Returns the views of `state`. Plans are predicted at once, in milliseconds. A search runs in
  // the host; its findings, and intervals widened by unstated inputs, appear in later calls.
  const Views& views(const AppState& state);

  // Returns the plan file of plan A, the input of Save, Export and the command line.
  std::optional<PlanFile> plan_file() const;
  // Whether the catalogue has this model under its name, with any sequence length and attention
  // dropout, which options state.
  bool is_in_catalogue(const ModelSpec& model) const;
  std::int64_t gpus_per_node() const {
    return views_.scenario ? views_.scenario->cluster.gpus_per_node : 8;
  }
  // Returns the stack with which plans are predicted.
  StackSpec stack() const { return views_.scenario ? views_.scenario->stack : StackSpec{}; }

 private:
  void load_choice(const Choice& choice);
  Status load(const Choice& choice);
  void look_at(const AppState& state);
  void read_measured(const std::string& file);
  std::shared_ptr<PlanView> view_of(const Plan& plan, const std::shared_ptr<PlanView>& before);
  bool price_next(PlanView* view);
  void add_cost(PlanView* view, double tokens) const;

  Catalogue catalogue_;
  SearchHost& host_;
  std::optional<Choice> loaded_;
  std::unique_ptr<LayerPricer> pricer_;
  OpenInputs open_;
  std::shared_ptr<PlanView> a_, b_;  // plans A and B of views_
  std::string measured_file_;
  Views views_;
};

}  // namespace tpsim::gui
