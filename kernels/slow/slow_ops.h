// Each op by its definition, on doubles, without optimization.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/ops.h"

namespace tpsim {

// The memory of a SlowDevice: one double for each element.
class SlowMemory {
 public:
  // Returns the tensor's elements; null for an undefined tensor.
  double* at(const Tensor& tensor) const;

  void* acquire(std::int64_t bytes);
  void give_back(void* data);

 private:
  std::map<std::uintptr_t, std::unique_ptr<double[]>> blocks_;
};

#define TPSIM_SLOW_OP(AnyOp) void compute_slowly(const AnyOp& op, const SlowMemory& memory);
TPSIM_FOR_EACH_OP(TPSIM_SLOW_OP)
#undef TPSIM_SLOW_OP

}  // namespace tpsim
