#include "cli/train_on_cpu.h"

namespace tpsim {

Result<bool> speaks_for(const TrainingRun&) {
  return Error{ErrorKind::kMissing, "this build has no CPU device", "",
               "apt-get install libdnnl-dev, then configure and build again"};
}

Status train_on_cpu(const TrainingRun& run, const TokenSource&,
                    const std::function<void(const StepReport&)>&, const TrainingHooks&) {
  return speaks_for(run).error();
}

}  // namespace tpsim
