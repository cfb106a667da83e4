// The training loop of one rank.
#pragma once

#include <functional>

#include "ranks/world.h"
#include "reference_model/training/tokens.h"
#include "reference_model/training/training_run.h"

namespace tpsim {

// kMissing, naming what is missing, where the device has no kernels for the model or cannot round
// by the plan's recipe. train() checks this too.
Status check_device(const Device& device, const ModelSpec& model, const Plan& plan);

// Forms the groups, loads or draws the weights, and trains. Every rank of the world calls this with
// the same run; `on_step` is called on each. Fails when the plan does not match the world or a file
// is bad.
Status train(World& world, Device& device, const TrainingRun& run, const TokenSource& tokens,
             const std::function<void(const StepReport&)>& on_step,
             const TrainingHooks& hooks = {});

}  // namespace tpsim
