// Tensors with reproducible contents, for ops that are created from keys.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/ops.h"
#include "kernels/tensor.h"

namespace tpsim {

// Creates operands. Each one repeats a fixed pool of normal numbers from a drawn offset on, because
// drawing every element would take longer than the ops.
class Operands {
 public:
  Operands(Device& device, std::uint64_t seed) : device_(device), seed_(seed) {}

  Tensor empty(Shape shape, DType dtype);
  // Returns a tensor of mean + deviation * N(0, 1).
  Tensor normal(Shape shape, DType dtype, double deviation = 1.0, double mean = 0.0);
  // Returns a tensor of squares of normal numbers.
  Tensor positive(Shape shape, DType dtype);
  // Returns an int32 tensor of whole numbers in [0, below).
  Tensor integers(Shape shape, std::int64_t below);
  // ALiBi slopes 2^(-8 (h + 1) / heads); `heads` is a power of two (Press et al. 2022).
  Tensor slopes(std::int64_t heads);

  Device& device() const { return device_; }

 private:
  template <class Change>
  Tensor filled(Shape shape, DType dtype, Change change);

  Device& device_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

// Tag dispatch: op_case() creates an op from its key, one overload for each op.
template <class AnyOp>
struct Of {};
#define TPSIM_OP_CASE(AnyOp) AnyOp op_case(Operands& make, const OpKey& key, Of<AnyOp> of);
TPSIM_FOR_EACH_OP(TPSIM_OP_CASE)
#undef TPSIM_OP_CASE

}  // namespace tpsim
