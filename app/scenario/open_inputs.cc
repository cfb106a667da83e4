#include "app/scenario/open_inputs.h"

#include "core/scenario/catalogue.h"

namespace tpsim::app {

Result<OpenInputs> open_inputs(const NamedScenario& named) {
  const Unstated unstated = unstated_of(named);
  if (unstated == Unstated{}) return OpenInputs();
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return OpenInputs::in(catalogue, named.scenario, names_of(named), unstated);
}

Field field_of(OpenInput input) {
  switch (input) {
    case OpenInput::kSoftware: return Field::kStack;
    case OpenInput::kNetwork: return Field::kNodeGbps;
    case OpenInput::kSettings: return Field::kSet;
  }
  return Field::kStack;
}

Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads) {
  TPSIM_TRY(OpenInputs open, open_inputs(named));
  named.assumed = open.widen(runs, threads);
  return Ok{};
}

}  // namespace tpsim::app
