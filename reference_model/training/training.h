// The training loop of one rank.
#pragma once

#include <functional>

#include "ranks/world.h"
#include "reference_model/training/tokens.h"
#include "reference_model/training/training_run.h"

namespace tpsim {

// Returns kMissing with the missing feature, if the device lacks kernels for the model or for the
// plan's precision recipe. train() checks this too.
Status check_device(const Device& device, const ModelSpec& model, const Plan& plan);

// Creates the process groups, loads or initializes the weights, and trains. Every rank of the world
// calls this with the same run. Calls `on_step` on each rank after each step. Error if the plan
// does not match the world, or if a file cannot be used.
Status train(World& world, Device& device, const TrainingRun& run, const TokenSource& tokens,
             const std::function<void(const StepReport&)>& on_step,
             const TrainingHooks& hooks = {});

}  // namespace tpsim
