// The facts of a training run that its losses follow from.
#pragma once

#include "reference_model/state/run_facts.h"

namespace tpsim {

struct TrainingRun;
class TokenSource;

// Model, optimizer, batch, seed and tokens of the run; not its layout.
RunFacts facts_of(const TrainingRun& run, const TokenSource& tokens);

}  // namespace tpsim
