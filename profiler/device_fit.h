// Fits the constants of a device model to the samples of a profile. The cost model uses the
// constants for ops without samples.
#pragma once

#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Returns ops that every profile times in addition to those of its plans, to measure rates: a large
// GEMM, a long copy, and ops so small that only launch time matters. For a GPU (asynchronous
// device), the sizes follow from the number of SMs and the memory size.
std::vector<OpRecord> probe_ops(DType dtype, const DeviceFacts& facts);

// Sets device.matmul_peak, device.vector_peak, device.memory_bandwidth and profile.model from the
// samples. `records` has the FLOPs and bytes of the sampled ops.
void fit_device(const std::vector<OpRecord>& records, Profile& profile);

}  // namespace tpsim
