// Helpers that compute an op's record, shared by the files that describe ops. Internal to kernels/.
#pragma once

#include <string>

#include "kernels/ops.h"

namespace tpsim {

inline void require(bool condition, const Label& label, const char* rule) {
  TPSIM_CHECK(condition, std::string(label.text) + ": " + rule);
}

// Returns the least memory traffic in bytes: each operand is read or written once.
template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  return static_cast<double>(((tensors.defined() ? tensors.bytes() : 0) + ...));
}

// An op's record without kind and label.
struct Work {
  DType dtype{};
  std::uint8_t variant = 0;
  OpDims dims{};
  double flops = 0, bytes = 0;
};
inline Work work(DType dtype, std::uint8_t variant, OpDims dims, double flops, double bytes) {
  return {dtype, variant, dims, flops, bytes};
}

// OpKey::variant of ops whose output dtype may differ from the input dtype.
inline std::uint8_t dtype_variant(const Tensor& into) {
  return static_cast<std::uint8_t>(into.dtype());
}

// Work of an op over rows x cols with `flops_per_element` FLOPs per element.
inline Work rowwise(const Tensor& x, std::uint8_t variant, double flops_per_element, double bytes) {
  return work(x.dtype(), variant, {x.rows(), x.cols()},
              flops_per_element * static_cast<double>(x.elements()), bytes);
}

inline Work flat(const Tensor& x, std::uint8_t variant, double flops_per_element, double bytes) {
  return work(x.dtype(), variant, {x.elements()},
              flops_per_element * static_cast<double>(x.elements()), bytes);
}

#define TPSIM_WORK_OF(AnyOp) Work work_of(const AnyOp& op);
TPSIM_FOR_EACH_OP(TPSIM_WORK_OF)
#undef TPSIM_WORK_OF

}  // namespace tpsim
