// Checks that every communicator must pass. Used by threads in one process and by ranks under
// mpirun, so failures are Errors and not assertions.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "kernels/device.h"
#include "ranks/communicator.h"

namespace tpsim {

struct CollectiveSize {
  std::int64_t elements = 1;
  DType dtype = DType::kFloat32;
};

// All collectives, in place and out of place, on small integers that every dtype adds exactly.
Status check_collectives(Device& device, Communicator& group, const CollectiveSize& size);

// Neighbours exchange several messages of different sizes, both sending first.
Status check_messages(Device& device, Communicator& group);

// fp32 tensors.
Tensor filled(Device& device, std::int64_t elements, float value);
std::vector<float> floats_of(Device& device, const Tensor& x);
// Numbers of very different magnitude, whose sum over ranks depends on the order of additions.
Tensor awkward_sum(Device& device, int rank, std::int64_t elements);

}  // namespace tpsim
