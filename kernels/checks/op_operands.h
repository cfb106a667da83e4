// Tensors with reproducible contents, for ops that are made from keys.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/ops.h"
#include "kernels/tensor.h"

namespace tpsim {

// Draws operand after operand. Each is a stretch of a fixed pool of normal numbers, since drawing
// every element anew would take longer than the ops do.
class Operands {
 public:
  Operands(Device& device, std::uint64_t seed) : device_(device), seed_(seed) {}

  Tensor empty(Shape shape, DType dtype);
  // mean + deviation * N(0, 1).
  Tensor normal(Shape shape, DType dtype, double deviation = 1.0, double mean = 0.0);
  // Squares of normal numbers.
  Tensor positive(Shape shape, DType dtype);
  // Whole numbers in [0, below).
  Tensor integers(Shape shape, std::int64_t below);
  // ALiBi's slopes for a power of two of heads (Press et al. 2022): 2^(-8 (h + 1) / heads).
  Tensor slopes(std::int64_t heads);

  Device& device() const { return device_; }

 private:
  template <class Change>
  Tensor filled(Shape shape, DType dtype, Change change);

  Device& device_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

// An op from its key: a function for every one.
template <class AnyOp>
struct Of {};
#define TPSIM_OP_CASE(AnyOp) AnyOp op_case(Operands& make, const OpKey& key, Of<AnyOp> of);
TPSIM_FOR_EACH_OP(TPSIM_OP_CASE)
#undef TPSIM_OP_CASE

}  // namespace tpsim
