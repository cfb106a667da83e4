// Creates ops from their keys, for tests and for the profiler.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"
#include "kernels/ops.h"

namespace tpsim {

// Returns an op with this key, so that describe() of the op returns the key. Operands are newly
// allocated, with values drawn by `seed`: equal on every device up to rounding. If an operand is
// the result of an earlier op (statistics, probabilities, log sums), this op is run on the device.
// Properties that a key does not contain are fixed: contiguous operands, one sample per batch of
// rows, no padded vocabulary columns, and no separate fp32 master weights.
Op make_op(Device& device, const OpKey& key, std::uint64_t seed);

// A tensor that the op writes.
struct OpResult {
  const char* name;
  Tensor tensor;
};
std::vector<OpResult> results_of(const Op& op);

}  // namespace tpsim
