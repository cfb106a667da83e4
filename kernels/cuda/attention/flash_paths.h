// Conditions under which the tensor-core kernels of flash attention can run an op.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/base/check.h"
#include "kernels/ops.h"

namespace tpsim {

inline constexpr std::int64_t kLongestTileRow = 128;  // largest head_dim of the tensor-core kernels
inline constexpr std::int64_t kGridYLimit = 65535;    // CUDA's limit; y counts tiles of queries

// Returns whether attention is causal without window, chunk or score cap. The tensor-core kernels
// require this.
template <class Flash>
bool is_plainly_causal(const Flash& op) {
  TPSIM_CHECK(!op.sinks.defined() && value_width(op.dims) == op.dims.head_dim,
              "attention without sinks, of values as wide as keys");
  const Visibility& visibility = op.visibility;
  return op.cap == 0 && (!visibility.is_limited() || visibility.reach() >= key_count(op.dims));
}

// Whether all vectors have 16-bit elements, are aligned to 16 bytes and fit in a tile row.
inline bool suits_tensor_cores(const AttentionDims& dims,
                               std::initializer_list<const Heads*> operands) {
  bool suits = dims.head_dim <= kLongestTileRow && dims.head_dim % 8 == 0 &&
               dims.seq <= 128 * kGridYLimit && dims.heads * dims.batch < std::int64_t{1} << 31;
  for (const Heads* x : operands) {
    suits = suits && size_of(x->tensor.dtype()) == 2 &&
            reinterpret_cast<std::uintptr_t>(x->tensor.raw()) % 16 == 0;
    for (const std::int64_t step :
         {x->offset, x->position_stride, x->sample_stride, x->head_stride}) {
      suits = suits && step % 8 == 0;
    }
  }
  return suits;
}

}  // namespace tpsim
