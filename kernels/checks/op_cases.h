// Ops made from their keys: what a test checks and a profiler times is what a plan asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "kernels/ops.h"

namespace tpsim {

// An op with this key (describe() of it gives the key back) on newly allocated operands, filled
// with values drawn by `seed`: equal on every device but for what their dtypes round. Operands that
// an earlier op leaves behind (statistics, probabilities, log sums) come from running that op on
// the device. What a key does not hold is chosen: contiguous operands, one sample per batch of
// rows, every vocabulary column real, fp32 weights their own master.
Op make_op(Device& device, const OpKey& key, std::uint64_t seed);

// The tensors that running the op changes.
struct OpResult {
  const char* name;
  Tensor tensor;
};
std::vector<OpResult> results_of(const Op& op);

}  // namespace tpsim
