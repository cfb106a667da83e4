// Training on CPUs. What the ranks are is the program's choice at link time: threads of this
// process, or processes that mpirun started, of which this is one.
#pragma once

#include <functional>

#include "core/result.h"
#include "reference_model/training.h"

namespace tpsim {

// Whether this process prints what the run has to say: with many processes, the first does. Fails
// when there are not as many ranks as the plan needs.
Result<bool> speaks_for(const TrainingRun& run);

// `on_step` hears the first rank. Without a CPU device in this build: kMissing.
Status train_on_cpu(const TrainingRun& run, const TokenSource& tokens,
                    const std::function<void(const StepReport&)>& on_step,
                    const TrainingHooks& hooks = {});

}  // namespace tpsim
