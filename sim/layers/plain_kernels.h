// Costs of plain PyTorch ops instead of fused kernels: every op is a launch and a pass over memory,
// and autograd saves intermediate tensors. Counted from the ops of the published modules of Hugging
// Face and LLaMA: RMSNorm (to fp32, square, mean, rsqrt, scale, back, weight); rotary positions
// (rotate half, two products, a sum); SwiGLU (silu, product); softmax in fp32 with a mask; AdamW
// over lists of tensors.
#pragma once

#include "core/program/program.h"
#include "core/software/stack_spec.h"

namespace tpsim {

struct PlainKernel {
  double traffic = 1;         // bytes moved relative to the fused kernel; at least 1
  std::int64_t launches = 1;  // at least 1
  Bytes kept;                 // saved for backward beyond the fused kernel; forward ops only
};

// Returns {1, 1, 0} if the stack's kernel is fused or no software part covers the op.
PlainKernel plain_kernel(const OpRecord& op, const StackSpec& stack);

}  // namespace tpsim
