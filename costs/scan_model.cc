#include "costs/scan_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/recurrence_records.h"

namespace tpsim {

Seconds scan_time(const OpKey& key, const DeviceFacts& device, const DeviceModel& model) {
  const BytesPerSecond bandwidth = kScanBandwidth * device.memory_bandwidth;
  Seconds time;
  for (const ScanKernel& kernel : scan_kernels(key)) {
    const Seconds compute = Flops(kernel.flops) / (kScanShare * device.matmul_peak);
    time += model.kernel_latency + std::max(Bytes(kernel.bytes) / bandwidth, compute);
  }
  return time;
}

std::string explain_scan(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model) {
  return fmt::format(
      "{} kernels, each latency {} + max(bytes / ({:.2f} x {}), FLOPs / ({:.2f} x {})); {} and "
      "{:.3g} FLOPs in all",
      scan_kernels(op.key).size(), to_string(model.kernel_latency), kScanBandwidth,
      to_string(device.memory_bandwidth), kScanShare, to_string(device.matmul_peak),
      to_string(Bytes(op.bytes)), op.flops);
}

}  // namespace tpsim
