// Time of the scan of a recurrence, kernel by kernel:
//   t = sum over kernels of latency + max(bytes / (b bandwidth), FLOPs / (s peak))
// with b = kScanBandwidth of the memory bandwidth and s = kScanShare of the tensor cores' peak for
// kernels with tiles of a chunk by a head. Bytes and FLOPs: kernels/recurrence_records.h. The
// profiles have no measurements of these kernels, so intervals are widened by kScanSpread of the
// share of scans.
#pragma once

#include <string>

#include "core/machine/profile.h"

namespace tpsim {

// For Triton's Mamba-2 kernels at tiles of 64 to 128, which are memory-bound at most sizes
// (pytorch.org, "Accelerating Mamba2 with Kernel Fusion"). The bandwidth share is an estimate from
// three rows of data/strangers/moe_rows.csv: bridge_26.06_nemotron-3-nano_h100_16_fp8_56 requires
// 0.35, bridge_26.08_nemotron-3-nano_gb300_8_mxfp8_10 requires 0.3, dgxc_nemotronh_h100_fp8_32
// requires 0.2.
inline constexpr double kScanBandwidth = 0.3;
inline constexpr double kScanShare = 0.25;
inline constexpr double kScanSpread = 0.4;

// Scores of planned ops run at the same share of the matrix units' peak.
bool is_planned_product(const OpKey& key);
Seconds planned_time(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model);
std::string explain_planned(const OpRecord& op, const DeviceFacts& device,
                            const DeviceModel& model);

// `key` has kind kScanForward or kScanBackward.
Seconds scan_time(const OpKey& key, const DeviceFacts& device, const DeviceModel& model);
std::string explain_scan(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model);

}  // namespace tpsim
