// Owners of tensors among the data-parallel ranks, for optimizers that need whole matrices.
// Corresponds to Megatron-Core's LayerWiseDistributedOptimizer.
#pragma once

#include <vector>

#include "core/software/stack_parts.h"
#include "kernels/tensor.h"

namespace tpsim {

// Returns the relative time of a tensor's update: long x short x short side of a matrix that is
// orthogonalized, else the number of elements.
double update_cost(OptimizerKind updater, const Shape& shape);

// Returns the owner of each tensor, from 0 to ranks - 1. The most expensive tensors are assigned
// first, each to the rank with the least cost so far; ties go to the lower index.
std::vector<int> balanced_owners(const std::vector<double>& costs, int ranks);

}  // namespace tpsim
