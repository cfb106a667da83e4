#include "gui/views/choice.h"

#include <utility>

#include "app/scenario/scenario_request.h"
#include "app/scenario/untried_parts.h"
#include "core/machine/node_rate.h"
#include "core/scenario/measured_stack.h"
#include "plans/search/usual_batch.h"

namespace tpsim::gui {
namespace {

// Returns the node bandwidth, times the factor inter_node, as a value of `--node-gbps`. A cluster
// with a single node has no network, so its value is unchanged.
Result<double> node_gbps_of(const Catalogue& catalogue, const Choice& choice) {
  if (choice.inter_node == 1 || choice.cluster == kThisMachine) return choice.node_gbps;
  TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(choice.cluster));
  if (cluster.nodes == 1) return choice.node_gbps;
  return choice.inter_node * (choice.node_gbps > 0 ? choice.node_gbps : node_rate_of(cluster));
}

}  // namespace

Result<LoadedChoice> load_choice(const Catalogue& catalogue, const Choice& choice) {
  PlanFile chosen{{}, choice.cluster, choice.profile, choice.stack, choice.parts, {}};
  if (choice.opened_model) {
    chosen.model = *choice.opened_model;
  } else {
    TPSIM_TRY(chosen.model, catalogue.load_model(choice.model));
  }
  TPSIM_TRY(chosen.node_gbps, node_gbps_of(catalogue, choice));
  chosen.stack_assumed = choice.stack.empty() || choice.stack_is_assumed;
  // `tpsim simulate` assumes a cluster only for models that have a usual one.
  const bool can_assume = choice.opened_model || chosen.model.usual.cluster == choice.cluster;
  chosen.network_assumed = choice.cluster_is_assumed && can_assume && chosen.node_gbps == 0;
  app::ScenarioRequest request{.file = std::move(chosen), .predicts = false};
  if (choice.seq > 0) request.seq = choice.seq;
  request.ignore_stack_limits = choice.ignores_stack_limits;
  request.gpus = choice.gpus;
  TPSIM_TRY(app::NamedScenario named, app::load_scenario(request, catalogue));
  named.is_saved = choice.around.has_value();
  Scenario& scenario = named.scenario;
  scenario.cluster.intra_node.bandwidth *= choice.intra_node;
  // Only the chosen software is planned, so the stack's alternative parts are removed.
  scenario.stack.choices.parts.clear();
  app::adopt_parts({{faster_parts(named, space_of(choice, scenario.model)), {}}}, named);
  return LoadedChoice{named.scenario, names_of(named), unstated_of(named)};
}

void choose_model(const std::string& name, Choice& choice) {
  choice.model = name;
  choice.opened_model.reset();
  choice.around.reset();
  choice.global_batch = 0;
  choice.seq = 0;
}

void choose_cluster(const std::string& name, Choice& choice) {
  choice.cluster = name;
  choice.cluster_is_assumed = false;
  choice.profile.clear();
  choice.stack.clear();
  choice.stack_is_assumed = false;
  choice.parts.clear();
  choice.node_gbps = 0;
  choice.intra_node = choice.inter_node = 1;
}

void choose_stack(const std::string& name, Choice& choice) {
  choice.stack = name;
  choice.stack_is_assumed = false;
  choice.parts.clear();
}

Selection selection_of(const AppState& state) {
  const Choice& choice = state.choice;
  return {state.plan, choice.stack, choice.parts, choice.intra_node, choice.inter_node};
}

void select(const Selection& selection, AppState& state) {
  state.plan = selection.plan;
  Choice& choice = state.choice;
  choice.stack = selection.stack;
  choice.parts = selection.parts;
  choice.intra_node = selection.intra_node;
  choice.inter_node = selection.inter_node;
}

std::int64_t global_batch_of(const Choice& choice, const ModelSpec& model) {
  return choice.global_batch > 0 ? choice.global_batch : searched_global_batch(model, choice.gpus);
}

// Settings that the limits leave free keep the values of the plan that the search starts from.
SearchSpace space_of(const Choice& choice, const ModelSpec& model) {
  SearchSpace space = choice.around ? space_around(*choice.around) : SearchSpace();
  SearchLimits limits = choice.limits;
  for (const SettingRow& row : setting_rows()) {
    if (limits.asked[row.setting].empty()) limits.asked[row.setting] = space.asked[row.setting];
  }
  static_cast<SearchLimits&>(space) = std::move(limits);
  space.gpus = choice.gpus;
  space.global_batch = global_batch_of(choice, model);
  return space;
}

}  // namespace tpsim::gui
