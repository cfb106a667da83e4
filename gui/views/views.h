// What follows from the state: scenario, plans, predictions, timelines. Recomputed only when what
// it depends on has changed.
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

// Predictions beside measurements: the report that `tpsim validate --runs FILE --json` prints
// (docs/json.md).
struct MeasuredRow {
  std::string id;
  double measured = 0, predicted = 0, low = 0, high = 0;  // seconds
};

struct MeasuredRuns {
  std::vector<MeasuredRow> rows;  // those with both times
  double mean_error = 0;          // mean of |predicted / measured - 1|
  std::size_t inside = 0;         // rows whose interval holds the measurement
  std::optional<Error> error;     // why the file could not be read
};

// Never fails: what is wrong with the file is in `error`.
MeasuredRuns read_measured_runs(const std::string& file);

// One plan, looked at closely.
struct PlanView {
  Plan plan;
  std::shared_ptr<const Scenario> scenario;
  std::optional<Error> error;  // why it cannot run; the rest is empty then
  Prediction predicted;
  PlanCosts costs;
  Timeline timeline;
  TimelineIndex index;
  std::vector<std::uint32_t> critical_path;
  double end = 0;  // of the timeline, seconds
  // Steps for the unstated inputs priced so far. The interval is too narrow until all are priced.
  OpenSteps open_steps;
  bool has_interval = false;
  Assumed assumed;
};

struct Views {
  std::vector<ModelEntry> models;  // families together; empty where one cannot be read
  std::vector<std::string> clusters;
  std::shared_ptr<const Scenario> scenario;  // null while the choice cannot be loaded
  ScenarioNames names;                       // of its parts
  Unstated unstated;
  std::int64_t global_batch = 0;
  std::optional<Error> error;  // why it cannot
  Findings found;
  bool is_searching = false;
  bool is_pricing = false;               // intervals are still being widened
  bool is_stale = false;                 // `found` and the plans belong to an earlier choice
  std::shared_ptr<const PlanView> a, b;  // null when there is none
  std::shared_ptr<const MeasuredRuns> measured;
};

class ViewComputer {
 public:
  ViewComputer(Catalogue catalogue, SearchHost& host);
  ~ViewComputer();

  // The views of `state`. Plans are predicted at once (milliseconds); a search goes on in the host
  // and its findings appear in the views of later calls, as do intervals of what nobody stated.
  const Views& views(const AppState& state);

  // The plan file of plan A: what Save, Export and the command line start from.
  std::optional<PlanFile> plan_file() const;
  // Whether the catalogue has this very model under its name, for sequences of whatever length and
  // any dropout of attention: options state these.
  bool is_in_catalogue(const ModelSpec& model) const;
  std::int64_t gpus_per_node() const {
    return views_.scenario ? views_.scenario->cluster.gpus_per_node : 8;
  }
  // That plans are predicted for.
  StackSpec stack() const { return views_.scenario ? views_.scenario->stack : StackSpec{}; }

 private:
  void load_choice(const Choice& choice);
  Status load(const Choice& choice);
  void look_at(const AppState& state);
  void read_measured(const std::string& file);
  std::shared_ptr<PlanView> view_of(const Plan& plan, const std::shared_ptr<PlanView>& before);
  bool price_next(PlanView* view);

  Catalogue catalogue_;
  SearchHost& host_;
  std::optional<Choice> loaded_;
  std::unique_ptr<LayerPricer> pricer_;
  OpenInputs open_;
  std::shared_ptr<PlanView> a_, b_;  // as views_ shows them
  std::string measured_file_;
  Views views_;
};

}  // namespace tpsim::gui
