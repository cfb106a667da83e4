#include "cli/train_on_cpu.h"

namespace tpsim {

Status train_on_cpu(const TrainingRun&, const TokenSource&,
                    const std::function<void(const StepReport&)>&) {
  return Error{ErrorKind::kMissing, "this build has no CPU device", "",
               "apt-get install libopenblas-dev, then configure and build again"};
}

}  // namespace tpsim
