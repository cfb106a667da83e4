// Fits the constants of a device to its samples. The constants are used where samples are missing.
#pragma once

#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Returns ops that every profile times besides those of its plans, to measure rates: a large GEMM,
// a long copy, and ops so small that only launch time matters. For an asynchronous device, sizes
// follow from its SMs and memory.
std::vector<OpRecord> probe_ops(DType dtype, const DeviceFacts& facts);

// Sets device.matmul_peak, vector_peak and memory_bandwidth, and the model, from the samples.
// `records` has FLOPs and bytes of the sampled keys.
void fit_device(const std::vector<OpRecord>& records, Profile& profile);

}  // namespace tpsim
