#include "app/scenario/open_inputs.h"

#include "app/scenario/field.h"
#include "core/scenario/catalogue.h"

namespace tpsim::app {

Result<OpenInputs> open_inputs(const NamedScenario& named) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return OpenInputs::in(catalogue, named.scenario, names_of(named), unstated_of(named));
}

std::string stating_option(OpenInput input) {
  switch (input) {
    case OpenInput::kSoftware: return option_of(Field::kStack);
    case OpenInput::kNetwork: return option_of(Field::kNodeGbps);
    case OpenInput::kSettings: return option_of(Field::kSet);
    case OpenInput::kLink: return option_of(Field::kCluster);
    case OpenInput::kKernel: return std::string(option_of(StackPart::kAttentionKernel));
    case OpenInput::kDocuments: break;
  }
  return option_of(Field::kModel);  // a file whose attention has chunks
}

Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads) {
  TPSIM_TRY(OpenInputs open, open_inputs(named));
  named.assumed = open.widen(runs, threads);
  return Ok{};
}

}  // namespace tpsim::app
