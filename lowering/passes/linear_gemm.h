// Operands of the GEMMs of linear layers, as the passes of quantization count them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/program/op_dims.h"

namespace tpsim {

inline constexpr unsigned kGemmLayout = kTransposeA | kTransposeB;

inline bool is_forward(const OpRecord& product) {
  return (product.key.variant & kGemmLayout) == kTransposeB;
}
inline bool is_weight_gradient(const OpRecord& product) {
  return (product.key.variant & kTransposeA) != 0;
}

// Returns the elements of the GEMM's first operand.
inline double inputs_of(const OpRecord& product) {
  return product_of(product.key, GemmDim::kBatch, GemmDim::kM, GemmDim::kK);
}

// Returns the elements of the GEMM's second operand.
inline double others_of(const OpRecord& product) {
  return product_of(product.key, GemmDim::kBatch, GemmDim::kN, GemmDim::kK);
}

// Returns whether the output's gradient is quantized once for dgrad and wgrad together. For grouped
// GEMMs of experts it is not.
inline bool is_pair(const OpRecord& product) { return dim_of(product.key, GemmDim::kBatch) == 1; }

// Finds the GEMMs of a phase whose input no earlier linear layer of the phase has quantized. Call
// is_new() for the linear layers of forward in order.
class QuantizedInputs {
 public:
  bool is_new(const OpRecord& product) {
    if (product.input == kNoAllocation) return true;
    const bool is_known = std::find(known_.begin(), known_.end(), product.input) != known_.end();
    if (!is_known) known_.push_back(product.input);
    return !is_known;
  }

 private:
  std::vector<std::uint32_t> known_;
};

// Whether the collective gathers a tensor-parallel input.
inline bool is_tensor_gather(const CollectiveRecord& record) {
  return record.kind == CollectiveKind::kAllGather && record.group == GroupKind::kTensor;
}

}  // namespace tpsim
