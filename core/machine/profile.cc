#include "core/machine/profile.h"

namespace tpsim {

DeviceModel usual_model() {
  DeviceModel model;
  model.source = "typical constants: near the median of the GPUs in data/profiles";
  model.matmul_efficiency = 0.78;
  model.matmul_latency = Seconds(2.5e-6);
  model.matmul = {.wave_rounding = 0.1,
                  .small_tile_exponent = 0.05,
                  .epilogue_exposed = 0.55,
                  .traffic_efficiency = 0.8,
                  .unaligned_rate = 0.68,
                  .unaligned_batched_rate = 0.68};
  model.sustained_clock = 0.9;
  model.streaming_efficiency = 0.85;
  model.reduction_efficiency = 0.75;
  model.flash_forward_efficiency = 0.65;
  model.flash_backward_efficiency = 0.53;
  model.kernel_latency = Seconds(2.5e-6);
  return model;
}

FlopsPerSecond matrix_peak(const DeviceFacts& device, DType operands) {
  switch (operands) {
    case DType::kFloat8:
    case DType::kFloat8Block: return device.fp8_peak;
    case DType::kMxFloat8: return device.mxfp8_peak;
    case DType::kNvFloat4: return device.nvfp4_peak;
    default: break;
  }
  const bool fits = size_of(operands) <= size_of(device.matmul_dtype) &&
                    (operands != DType::kBFloat16 || device.matmul_dtype != DType::kFloat16);
  return fits ? device.matmul_peak : FlopsPerSecond();
}

std::string narrow_types_text(const DeviceFacts& device) {
  std::string text;
  for (const DType type :
       {DType::kFloat8, DType::kFloat8Block, DType::kMxFloat8, DType::kNvFloat4}) {
    if (matrix_peak(device, type) <= FlopsPerSecond()) continue;
    text += (text.empty() ? "" : ", ") + std::string(name_of(type));
  }
  return text.empty() ? "no dtype below 16 bits" : text;
}

DType usual_dtype(const DeviceFacts& device) {
  return device.matmul_dtype == DType::kFloat16 ? DType::kFloat16 : DType::kBFloat16;
}

}  // namespace tpsim
