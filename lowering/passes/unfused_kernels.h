// Costs of unfused PyTorch ops relative to a fused kernel: every op is a launch and a pass over
// memory, and autograd saves intermediate tensors. Counted from the ops of the published modules of
// Hugging Face and LLaMA: RMSNorm (cast to fp32, square, mean, rsqrt, scale, cast back, weight);
// rotary positions (rotate half, two multiplications, a sum); SwiGLU (silu, multiplication); fp32
// softmax with a mask; GELU as a formula; experts' tokens gathered by index; AdamW over lists of
// tensors.
#pragma once

#include "core/program/program.h"
#include "core/software/stack_spec.h"

namespace tpsim {

struct UnfusedKernels {
  double traffic = 1;         // bytes moved relative to the fused kernel; at least 1
  std::int64_t launches = 1;  // at least 1
  // Bytes saved for backward in addition to the fused kernel's; forward ops only. Negative if plain
  // ops save less.
  Bytes kept;
};

// Whether an update is several kernels, those of the optimizer's row.
bool updates_in_passes(const StackSpec& stack);

// Returns {1, 1, 0} if the stack's kernel is fused, or if no software option covers the op.
// `activation`: of the model.
UnfusedKernels unfused_kernels_of(const OpRecord& op, const StackSpec& stack,
                                  ActivationOps activation);

}  // namespace tpsim
