// How long the scan of a recurrence takes: kernel after kernel,
//   t = sum over kernels of latency + max(bytes / (b bandwidth), FLOPs / (s peak))
// with b = kScanBandwidth of the memory's rate and s = kScanShare of the matrix units' peak, which
// kernels with tiles of a chunk by a head reach. Bytes and FLOPs: kernels/recurrence_records.h.
// Nobody has measured these kernels for the profiles: where scans matter, the interval is wider by
// kScanSpread of their share.
#pragma once

#include <string>

#include "core/machine/profile.h"

namespace tpsim {

// Of Triton's kernels of Mamba-2 at tiles of 64 to 128, which wait for memory at most sizes
// (pytorch.org, "Accelerating Mamba2 with Kernel Fusion"). The share of the bandwidth was judged on
// three rows of data/strangers/moe_rows.csv: bridge_26.06_nemotron-3-nano_h100_16_fp8_56 asks for
// 0.35, bridge_26.08_nemotron-3-nano_gb300_8_mxfp8_10 for 0.3, dgxc_nemotronh_h100_fp8_32 for 0.2.
inline constexpr double kScanBandwidth = 0.3;
inline constexpr double kScanShare = 0.25;
inline constexpr double kScanSpread = 0.4;

// Scores of planned ops run at the same share of the matrix units' peak.
bool is_planned_product(const OpKey& key);
Seconds planned_time(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model);
std::string explain_planned(const OpRecord& op, const DeviceFacts& device,
                            const DeviceModel& model);

// key: kScanForward or kScanBackward.
Seconds scan_time(const OpKey& key, const DeviceFacts& device, const DeviceModel& model);
std::string explain_scan(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model);

}  // namespace tpsim
