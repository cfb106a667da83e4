// Time of the scan of a recurrent layer (Mamba-2, gated delta net), summed over its kernels:
//   t = sum over kernels of latency + max(bytes / (b bandwidth), FLOPs / (s peak))
// with b = kScanBandwidth and s = kScanShare of the tensor cores' peak. Tiles are small: one chunk
// of one head. kernels/recurrence_records.h computes bytes and FLOPs. The profiles have no samples
// of these kernels, so the prediction interval is widened by kScanSpread times the scans' share of
// the step.
#pragma once

#include <string>

#include "core/machine/profile.h"

namespace tpsim {

// Constants of Triton's Mamba-2 kernels with tiles of 64 to 128, memory-bound at most sizes
// (pytorch.org, "Accelerating Mamba2 with Kernel Fusion"). The bandwidth share is an estimate from
// three rows of data/strangers/moe_rows.csv: bridge_26.06_nemotron-3-nano_h100_16_fp8_56 requires
// 0.35, bridge_26.08_nemotron-3-nano_gb300_8_mxfp8_10 requires 0.3, dgxc_nemotronh_h100_fp8_32
// requires 0.2.
inline constexpr double kScanBandwidth = 0.3;
inline constexpr double kScanShare = 0.25;
inline constexpr double kScanSpread = 0.4;

// Returns whether a planned op is a GEMM on tensor cores, such as attention scores that are not
// multiplied by values. planned_time() prices the op as one kernel with the constants above.
bool is_planned_product(const OpKey& key);
Seconds planned_time(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model);
std::string explain_planned(const OpRecord& op, const DeviceFacts& device,
                            const DeviceModel& model);

// `key` has kind kScanForward or kScanBackward.
Seconds scan_time(const OpKey& key, const DeviceFacts& device, const DeviceModel& model);
std::string explain_scan(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model);

}  // namespace tpsim
