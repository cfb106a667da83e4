// The software of a scenario after loading.
#pragma once

#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Applies the software options, and the host and memory properties that the profile measured.
StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Scenario& scenario);

}  // namespace tpsim
