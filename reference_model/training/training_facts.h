// The settings of a training run that determine its losses.
#pragma once

#include "reference_model/state/run_facts.h"

namespace tpsim {

struct TrainingRun;
class TokenSource;

// Returns settings of model, optimizer, batch, seed and tokens. Excludes the parallel layout.
RunFacts facts_of(const TrainingRun& run, const TokenSource& tokens);

}  // namespace tpsim
