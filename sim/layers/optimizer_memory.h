// Memory of the optimizer's state.
#pragma once

#include "core/program/program.h"
#include "core/software/stack_spec.h"
#include "lowering/trace/trace.h"

namespace tpsim {

// Sets the sizes of the traced optimizer state to those of the stack: moments in its
// optimizer_dtype, one moment per matrix for Muon, and no fp32 weights without master_weights.
void narrow_optimizer(Program& program, LayerKind kind, const StackSpec& stack);

}  // namespace tpsim
