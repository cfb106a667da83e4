// Linear layers whose products take 8-bit floats, as Transformer Engine runs them with delayed
// scaling: the product itself, and the casts before it. Weights are cast once per step and their
// casts left out, as are the maxima that set the scales (a few bytes per tensor).
#pragma once

#include <optional>

#include "core/program.h"

namespace tpsim {

// Of a block; attention cores, the head and the router of experts keep their 16 bits.
bool is_linear_layer(const OpRecord& op);

// The same product of 8-bit operands. The matrix units take one layout only, that of y = x W^T:
// the others read transposed copies.
OpRecord in_fp8(const OpRecord& product);

// The pass that makes the product's 8-bit operand from 16 bits, with its transpose for the weight
// gradient: 2 bytes read and 2 written per element. None for weight gradients, which find both.
std::optional<OpRecord> cast_before(const OpRecord& product);

}  // namespace tpsim
