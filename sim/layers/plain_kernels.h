// What a layer's kernels cost where the software runs plain PyTorch ops in place of a fused one:
// every op is a launch and a pass over memory, and autograd keeps what the passes left between
// them. Counted from the ops that Hugging Face's and LLaMA's published modules issue: RMSNorm
// (to fp32, square, mean, rsqrt, scale, back, weight), rotary positions (rotate half, two products,
// a sum), SwiGLU (silu, product), softmax in fp32 with a mask, AdamW over lists of tensors.
#pragma once

#include "core/program/program.h"
#include "core/software/stack_spec.h"

namespace tpsim {

struct PlainKernel {
  double traffic = 1;         // bytes moved over those of the fused kernel; at least 1
  std::int64_t launches = 1;  // at least 1
  Bytes kept;                 // for backward, beside what the fused kernel keeps; forward ops alone
};

// {1, 1, 0} where the stack's kernel is fused, and for ops that no part is about.
PlainKernel plain_kernel(const OpRecord& op, const StackSpec& stack);

}  // namespace tpsim
