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

bool is_planned_product(const OpKey& key) {
  const bool is_planned =
      key.kind == OpKind::kPlannedForward || key.kind == OpKind::kPlannedBackward;
  return is_planned && key.variant == 1;
}

Seconds planned_time(const OpRecord& op, const DeviceFacts& device, const DeviceModel& model) {
  const Seconds compute = Flops(op.flops) / (kScanShare * device.matmul_peak);
  const Seconds memory = Bytes(op.bytes) / (kScanBandwidth * device.memory_bandwidth);
  return model.kernel_latency + std::max(memory, compute);
}

std::string explain_planned(const OpRecord& op, const DeviceFacts& device,
                            const DeviceModel& model) {
  return fmt::format("latency {} + max({} / ({:.2f} x {}), {:.3g} FLOPs / ({:.2f} x {}))",
                     to_string(model.kernel_latency), to_string(Bytes(op.bytes)), kScanBandwidth,
                     to_string(device.memory_bandwidth), op.flops, kScanShare,
                     to_string(device.matmul_peak));
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
