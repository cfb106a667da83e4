// The settings of a training run that determine its losses.
#pragma once

#include "reference_model/state/run_facts.h"

namespace tpsim {

struct TrainingRun;
class TokenSource;

// Returns the settings of model, optimizer, batch, seed and tokens. Excludes the parallel layout,
// which does not affect the losses.
RunFacts facts_of(const TrainingRun& run, const TokenSource& tokens);

}  // namespace tpsim
