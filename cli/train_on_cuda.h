// Training on GPUs: on one by this process alone, or as one rank of the job that a launcher
// started.
#pragma once

#include <functional>

#include "core/result.h"
#include "reference_model/training.h"

namespace tpsim {

// Whether this process prints what the run has to say: with many processes, the first does. Fails
// when a plan of several ranks was not started by a launcher.
Result<bool> speaks_for_gpus(const TrainingRun& run);

// `on_step` hears the first rank. Without a CUDA device in this build or on this machine: kMissing.
Status train_on_cuda(const TrainingRun& run, const TokenSource& tokens,
                     const std::function<void(const StepReport&)>& on_step,
                     const TrainingHooks& hooks = {});

}  // namespace tpsim
