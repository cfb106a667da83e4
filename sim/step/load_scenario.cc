#include "sim/step/load_scenario.h"

#include <fmt/format.h>

#include "core/machine/node_rate.h"
#include "core/model/model_support.h"
#include "costs/machine_cluster.h"

namespace tpsim {
namespace {

const std::string& or_else(const std::string& name, const std::string& otherwise) {
  return name.empty() ? otherwise : name;
}

// Loads cluster and profile. kThisMachine has no cluster file: its cluster is derived from the
// profile.
Status load_machine(const Catalogue& catalogue, const ScenarioNames& names, Scenario& scenario) {
  if (names.cluster != kThisMachine) {
    TPSIM_TRY(scenario.cluster, catalogue.load_cluster(names.cluster));
    TPSIM_TRY(scenario.profile,
              catalogue.load_profile(or_else(names.profile, scenario.cluster.profile)));
    return Ok{};
  }
  if (!names.profile.empty()) {
    TPSIM_TRY(scenario.profile, catalogue.load_profile(names.profile));
  }
  if (scenario.profile.machine.devices == 0) {
    return bad_input("the profile does not describe the machine that it was measured on",
                     names.profile,
                     "give a profile that tpsim profile wrote, or choose a --cluster");
  }
  scenario.cluster = machine_cluster(scenario.profile);
  return Ok{};
}

}  // namespace

ScenarioNames names_of(const PlanFile& file) {
  return {file.model.name, file.cluster, file.profile, file.stack, file.parts, file.node_gbps};
}

StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Scenario& scenario) {
  stack = with_parts(std::move(stack), parts);
  stack = stack_as_measured(std::move(stack), scenario.profile);
  return scenario.cluster.name == kThisMachine
             ? stack_on_machine(std::move(stack), scenario.profile)
             : stack;
}

Result<Scenario> completed(Scenario scenario, const PartValues& parts, double node_gbps) {
  if (node_gbps > 0) {
    if (scenario.cluster.nodes == 1) {
      return bad_input(fmt::format("cluster {} has one node and no network between nodes",
                                   scenario.cluster.name),
                       "node_gbps", "remove node_gbps");
    }
    scenario.cluster = with_node_rate(std::move(scenario.cluster), node_gbps);
  }
  scenario.stack = completed_stack(std::move(scenario.stack), parts, scenario);
  return scenario;
}

Result<Scenario> load_scenario(const Catalogue& catalogue, ModelSpec model,
                               const ScenarioNames& names) {
  Scenario scenario;
  scenario.model = std::move(model);
  TPSIM_TRY_STATUS(validate(scenario.model));
  TPSIM_TRY_STATUS(check_plannable(scenario.model));
  TPSIM_TRY_STATUS(load_machine(catalogue, names, scenario));
  TPSIM_TRY(scenario.stack, catalogue.load_stack(or_else(names.stack, scenario.cluster.stack)));
  return completed(std::move(scenario), names.parts, names.node_gbps);
}

Result<Scenario> load_scenario(const Catalogue& catalogue, const ScenarioNames& names) {
  TPSIM_TRY(ModelSpec model, catalogue.load_model(names.model));
  return load_scenario(catalogue, std::move(model), names);
}

Result<Scenario> scenario_of(const Catalogue& catalogue, const PlanFile& file) {
  return load_scenario(catalogue, file.model, names_of(file));
}

}  // namespace tpsim
