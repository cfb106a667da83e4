// The one thing that the library adds to the folders below it: a scenario from four names.
#include "core/catalogue.h"
#include "library/tpsim.h"

namespace tpsim {

Result<Scenario> load_scenario(const Catalogue& catalogue, const ScenarioNames& names) {
  const auto or_else = [](const std::string& name, const std::string& otherwise) {
    return name.empty() ? otherwise : name;
  };
  Scenario scenario;
  TPSIM_TRY(scenario.model, catalogue.load_model(names.model));
  TPSIM_TRY_STATUS(check_plannable(scenario.model));
  TPSIM_TRY(scenario.cluster, catalogue.load_cluster(names.cluster));
  TPSIM_TRY(scenario.profile,
            catalogue.load_profile(or_else(names.profile, scenario.cluster.profile)));
  TPSIM_TRY(scenario.stack, catalogue.load_stack(or_else(names.stack, scenario.cluster.stack)));
  return scenario;
}

}  // namespace tpsim
