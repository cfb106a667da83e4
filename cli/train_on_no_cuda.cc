#include "cli/train_on_cuda.h"

namespace tpsim {
namespace {

Error no_cuda() {
  return {ErrorKind::kMissing, "this build has no CUDA device", "--device cuda",
          "install the CUDA Toolkit, then configure with -DTPSIM_CUDA=ON and build again"};
}

}  // namespace

Result<bool> speaks_for_gpus(const TrainingRun&) { return no_cuda(); }

Status train_on_cuda(const TrainingRun&, const TokenSource&,
                     const std::function<void(const StepReport&)>&, const TrainingHooks&) {
  return no_cuda();
}

}  // namespace tpsim
