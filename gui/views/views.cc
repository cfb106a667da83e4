#include "gui/views/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/model_json.h"
#include "core/software/launch_rules.h"
#include "gui/views/answer.h"
#include "gui/views/critical_path.h"
#include "gui/views/knobs.h"
#include "sim/step/predict.h"
#include "sim/step/step.h"

namespace tpsim::gui {
namespace {

std::shared_ptr<PlanView> compute_plan(LayerPricer& pricer, const Plan& plan) {
  auto view = std::make_shared<PlanView>();
  view->plan = plan;
  if (const Status status = check_plan(pricer.scenario(), plan); !status.ok()) {
    view->error = status.error();
    return view;
  }
  Result<Prediction> predicted = predict(pricer, plan);
  if (!predicted.ok()) {
    view->error = predicted.error();
    return view;
  }
  view->predicted = *std::move(predicted);
  view->costs = plan_costs(pricer, plan);
  step_cost(pricer, plan, view->costs, &view->timeline);
  view->index = index_of(view->timeline);
  view->critical_path = critical_path(view->timeline);
  view->end = std::max(1e-9, to_seconds(view->timeline.end).value());
  return view;
}

std::string refusal_text(const LaunchRule& rule) {
  return fmt::format("{}: {}", refusal_of(rule), rule.why);
}

// Returns plan A: the selected plan, else the best plan found, else the plan that misses the memory
// limit by least.
std::optional<Plan> plan_in_focus(const AppState& state, const Findings& found) {
  if (state.plan) return state.plan;
  if (!found.plans.empty()) return found.plans.front().plan;
  if (found.nearest_miss) return found.nearest_miss->plan;
  return std::nullopt;
}

}  // namespace

ViewComputer::ViewComputer(Catalogue catalogue, SearchHost& host)
    : catalogue_(std::move(catalogue)), host_(host) {
  if (auto models = model_index(catalogue_); models.ok()) views_.models = std::move(models).value();
  views_.clusters = catalogue_.list(CatalogueKind::kClusters);
  for (const std::string& name : catalogue_.list(CatalogueKind::kStacks)) {
    Result<StackSpec> stack = catalogue_.load_stack(name);
    if (!stack.ok()) continue;  // selecting the name would show the error
    stacks_.push_back(*std::move(stack));
    views_.stacks.push_back({name, ""});
  }
}

ViewComputer::~ViewComputer() = default;

const Views& ViewComputer::views(const AppState& state) {
  if (!loaded_ || *loaded_ != state.choice) load_choice(state.choice);
  while (std::optional<SearchNews> news = host_.news()) take(*std::move(news));
  views_.is_searching = host_.is_busy();
  views_.progress = host_.progress();
  read_measured(state.measured_file);
  look_at(state);
  if (!views_.is_searching && !views_.is_pricing) add_cost(a_.get(), state.tokens);
  return views_;
}

void ViewComputer::load_choice(const Choice& choice) {
  loaded_ = choice;
  pricer_.reset();
  open_ = OpenInputs();
  views_.error.reset();
  if (const Status loaded = load(choice); !loaded.ok()) {
    views_.error = loaded.error();
    views_.scenario.reset();
    clear_findings();
    host_.stop();
    a_.reset();
    b_.reset();
    return;
  }
  judge_stacks();
  pricer_ = std::make_unique<LayerPricer>(*views_.scenario);
  views_.is_stale = true;
  search();
}

// Finds the stacks that cannot run the model with any plan.
void ViewComputer::judge_stacks() {
  for (std::size_t i = 0; i < stacks_.size(); ++i) {
    const LaunchRule* const broken =
        broken_rule(stacks_[i].launcher, RuleScope::kModel, views_.scenario->model, Plan());
    views_.stacks[i].refusal = broken == nullptr ? "" : refusal_text(*broken);
  }
}

void ViewComputer::search() {
  if (!loaded_ || !views_.scenario) return;
  awaits_news_ = true;
  views_.is_stopped = false;
  host_.begin(SearchJob(*loaded_, views_.scenario));
}

void ViewComputer::stop_search() {
  host_.stop();
  views_.is_stopped = true;
}

void ViewComputer::clear_findings() {
  const std::int64_t revision = views_.found.revision + 1;
  views_.found = Findings();
  views_.found.revision = revision;
}

// Adds results of the search. The first results replace those of the previous search.
void ViewComputer::take(SearchNews news) {
  if (awaits_news_) {
    clear_findings();
    views_.found.choice = *loaded_;
    awaits_news_ = false;
    views_.is_stale = false;
  }
  views_.found.add(std::move(news));
}

Status ViewComputer::load(const Choice& choice) {
  TPSIM_TRY(LoadedChoice loaded, gui::load_choice(catalogue_, choice));
  TPSIM_TRY(open_, OpenInputs::in(catalogue_, loaded.scenario, loaded.names, loaded.unstated));
  views_.scenario = std::make_shared<const Scenario>(std::move(loaded.scenario));
  views_.names = std::move(loaded.names);
  views_.unstated = loaded.unstated;
  views_.global_batch = global_batch_of(choice, views_.scenario->model);
  return Ok{};
}

// Updates plans A and B. While a new search has no result, the best plan of the previous search
// stays.
void ViewComputer::look_at(const AppState& state) {
  if (pricer_) {
    const std::optional<Plan> focus = plan_in_focus(state, views_.found);
    if (!focus) {
      a_.reset();
    } else if (state.plan || !views_.is_stale) {
      a_ = view_of(*focus, a_);
    }
    b_ = state.pinned ? view_of(*state.pinned, b_) : nullptr;
  }
  views_.is_pricing = price_next(a_.get()) || price_next(b_.get());
  views_.a = a_;
  views_.b = b_;
  update_knobs();
  update_bands(state.timeline.stage);
}

void ViewComputer::update_bands(std::int64_t stage) {
  const bool has_bands = stage >= 0 && a_ && !a_->error && a_->scenario == views_.scenario;
  if (!has_bands) return views_.bands.reset();
  stage = std::min(stage, a_->index.stages() - 1);
  if (views_.bands && views_.bands->stage == stage && bands_plan_ == a_) return;
  bands_plan_ = a_;
  views_.bands = std::make_shared<const StageBands>(
      stage_bands(*pricer_, a_->plan, a_->costs, a_->timeline,
                  a_->predicted.memory[static_cast<std::size_t>(stage)]));
}

// Checking every value of every setting takes a third of a millisecond for a large mixture, so it
// is done once per plan and not once per frame.
void ViewComputer::update_knobs() {
  if (a_ == knobs_plan_ && views_.scenario == knobs_scenario_) return;
  knobs_plan_ = a_;
  knobs_scenario_ = views_.scenario;
  views_.knobs.clear();
  if (!a_ || !views_.scenario) return;
  for (const SettingRow& row : setting_rows()) {
    if (!has_knob(row)) continue;
    views_.knobs[row.setting] = setting_values(a_->plan, row, *views_.scenario);
  }
}

// Predicts one alternative of the unstated inputs, to widen the plan's interval. Called once per
// frame. Returns false if no alternative is left.
bool ViewComputer::price_next(PlanView* view) {
  const bool is_current = view != nullptr && view->scenario == views_.scenario && !view->error;
  if (!is_current || view->has_interval) return false;
  if (open_.price_next(view->plan, view->open_steps)) return true;
  view->assumed = open_.widen(view->predicted, view->open_steps);
  view->has_interval = true;
  return false;
}

// Computes the cost once per plan, after all alternatives of unstated inputs are predicted.
void ViewComputer::add_cost(PlanView* view, double tokens) const {
  if (view == nullptr || view->error || !view->has_interval) return;
  const bool is_known = view->cost.tokens == tokens || !view->cost.missing.empty();
  if (is_known || !fits_in_memory(view->predicted)) return;
  view->cost = run_cost(catalogue_, views_.names.cluster, *view->scenario,
                        {view->plan, view->predicted}, tokens);
}

std::shared_ptr<PlanView> ViewComputer::view_of(const Plan& plan,
                                                const std::shared_ptr<PlanView>& before) {
  const bool is_known = before && before->plan == plan && before->scenario == views_.scenario;
  if (is_known) return before;
  std::shared_ptr<PlanView> view = compute_plan(*pricer_, plan);
  view->scenario = views_.scenario;
  return view;
}

void ViewComputer::read_measured(const std::string& file) {
  if (file == measured_file_) return;
  measured_file_ = file;
  views_.measured =
      file.empty() ? nullptr : std::make_shared<const MeasuredRuns>(read_measured_runs(file));
}

std::optional<PlanFile> ViewComputer::plan_file() const {
  if (!views_.scenario || !views_.a) return std::nullopt;
  const ScenarioNames& names = views_.names;
  return PlanFile{views_.scenario->model,
                  names.cluster,
                  names.profile,
                  names.stack,
                  names.parts,
                  views_.a->plan,
                  names.node_gbps,
                  views_.unstated.software,
                  views_.unstated.network};
}

bool ViewComputer::fits() const { return a_ && fits_in_memory(a_->predicted); }

bool ViewComputer::is_in_catalogue(const ModelSpec& model) const {
  Result<ModelSpec> own = catalogue_.load_model(model.name);
  if (!own.ok()) return false;
  own->seq = model.seq;
  own->attention_dropout = model.attention_dropout;
  return to_json(*own) == to_json(model);
}

}  // namespace tpsim::gui
