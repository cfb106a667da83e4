// Training on this machine's CPU, one thread per rank.
#pragma once

#include <functional>

#include "core/result.h"
#include "reference_model/training.h"

namespace tpsim {

// `on_step` hears the first rank. Without a CPU device in this build: kMissing.
Status train_on_cpu(const TrainingRun& run, const TokenSource& tokens,
                    const std::function<void(const StepReport&)>& on_step);

}  // namespace tpsim
