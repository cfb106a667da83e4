// Memory of the optimizer's state.
#pragma once

#include "core/program/program.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// Sets the moments to the stack's dtype, for any dtype of the weights (Transformer Engine's
// FusedAdam, exp_avg_dtype). Removes the fp32 copy of the weights if the stack has none. An
// offloaded optimizer keeps all three in fp32.
void narrow_optimizer(Program& program, const StackSpec& stack);

}  // namespace tpsim
