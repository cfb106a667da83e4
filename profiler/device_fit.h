// The constants of a device, from its samples: what stands where no sample does.
#pragma once

#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Ops that every profile holds beside those that its plans need, so that rates can be read from
// them: a large matrix product, a long copy, and ops so small that only their launch takes time.
// For an asynchronous device, a GPU, as large as its processors and memory ask for.
std::vector<OpRecord> probe_ops(DType dtype, const DeviceFacts& facts);

// Fills device.matmul_peak, vector_peak and memory_bandwidth, and the model, from the samples.
// `records` has FLOPs and bytes of the sampled keys.
void fit_device(const std::vector<OpRecord>& records, Profile& profile);

}  // namespace tpsim
