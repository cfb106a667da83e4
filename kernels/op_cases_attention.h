// Operands for the ops of attention's core. Internal to kernels/: make_op() is for everybody.
#pragma once

#include "kernels/op_operands.h"

namespace tpsim {

// An op of kernels/attention_ops.h from its key.
Op make_attention_op(Operands& make, const OpKey& key);

}  // namespace tpsim
