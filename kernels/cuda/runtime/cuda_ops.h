// CUDA's implementation of each op; CudaDevice::execute() visits an op with these.
//
// The functions issue work to the state's stream and return. Operands may be the same memory where
// kernels/ops.h allows it. They may not overlap partially.
#pragma once

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/ops.h"

namespace tpsim {

#define TPSIM_CUDA_OP(AnyOp) void compute(const AnyOp& op, CudaState& state);
TPSIM_FOR_EACH_OP(TPSIM_CUDA_OP)
#undef TPSIM_CUDA_OP

}  // namespace tpsim
