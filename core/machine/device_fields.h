// Fields of a profile file that describe the GPU, the machine, and the model of kernels without
// sample.
#pragma once

#include "core/json/json_fields.h"
#include "core/json/key_meanings.h"
#include "core/machine/profile.h"

namespace tpsim {

inline constexpr NumberRange kEfficiencyRange{1e-6,
                                              1.5};  // efficiencies; a fit may slightly exceed 1

inline constexpr auto kDeviceFields = [](auto& io, auto& device) {
  io.text(key_at("device/name"), device.name);
  io.text(key_at("device/source"), device.source);
  io.quantity(key_at("device/memory"), device.memory);
  io.integer(key_at("device/processors"), device.processors, {});
  io.quantity(key_at("device/matmul_peak"), device.matmul_peak);
  io.choice(key_at("device/matmul_dtype"), device.matmul_dtype,
            {DType::kFloat32, DType::kBFloat16, DType::kFloat16});
  io.quantity(key_at("device/fp8_peak"), device.fp8_peak, kOptional);
  io.quantity(key_at("device/mxfp8_peak"), device.mxfp8_peak, kOptional);
  io.quantity(key_at("device/nvfp4_peak"), device.nvfp4_peak, kOptional);
  io.quantity(key_at("device/vector_peak"), device.vector_peak);
  io.quantity(key_at("device/memory_bandwidth"), device.memory_bandwidth);
  io.quantity(key_at("device/measured_bandwidth"), device.measured_bandwidth, kOptional);
  io.flag(key_at("device/asynchronous"), device.asynchronous);
  io.require(device.memory.value() > 0, "memory", "it must be above zero");
  io.require(device.matmul_peak.value() > 0, "matmul_peak", "it must be above zero");
  io.require(device.vector_peak.value() > 0, "vector_peak", "it must be above zero");
  io.require(device.memory_bandwidth.value() > 0, "memory_bandwidth", "it must be above zero");
};

inline constexpr auto kMatmulFields = [](auto& io, auto& matmul) {
  constexpr NumberRange kFraction{0, 1};
  io.number(key_at("device/wave_rounding"), matmul.wave_rounding, kFraction, kOptional);
  io.number(key_at("device/small_tile_exponent"), matmul.small_tile_exponent, {0, 2}, kOptional);
  io.number(key_at("device/epilogue_exposed"), matmul.epilogue_exposed, {0, 2}, kOptional);
  io.number(key_at("device/traffic_efficiency"), matmul.traffic_efficiency, kEfficiencyRange,
            kOptional);
  io.number(key_at("device/unaligned_rate"), matmul.unaligned_rate, kEfficiencyRange, kOptional);
  io.number(key_at("device/unaligned_batched_rate"), matmul.unaligned_batched_rate,
            kEfficiencyRange, kOptional);
  io.number(key_at("device/nn_layout_factor"), matmul.nn_layout_factor, {0.1, 10}, kOptional);
  io.number(key_at("device/tn_layout_factor"), matmul.tn_layout_factor, {0.1, 10}, kOptional);
  io.number(key_at("device/split_sum_cost"), matmul.split_sum_cost, {0, 10}, kOptional);
};

inline constexpr auto kAttentionSpeedFields = [](auto& io, auto& speeds) {
  io.number(key_at("device/flash1"), speeds.flash1, {0.01, 10});
  io.number(key_at("device/flash2"), speeds.flash2, {0.01, 10});
  io.number(key_at("device/flash3"), speeds.flash3, {0.01, 10});
  io.number(key_at("device/cudnn"), speeds.cudnn, {0.01, 10});
};

inline constexpr auto kModelFields = [](auto& io, auto& model) {
  io.text(key_at("device/model.source"), model.source, kOptional);
  io.choice(key_at("device/provenance"), model.provenance,
            {Provenance::kMeasuredHere, Provenance::kPublished, Provenance::kDatasheet});
  io.number(key_at("device/matmul_efficiency"), model.matmul_efficiency, kEfficiencyRange,
            kOptional);
  io.integer(key_at("device/tile_m"), model.tile_m, {}, kOptional);
  io.integer(key_at("device/tile_n"), model.tile_n, {}, kOptional);
  io.quantity(key_at("device/matmul_latency"), model.matmul_latency, kOptional);
  io.object(
      key_at("device/matmul"), [&](auto& inner) { kMatmulFields(inner, model.matmul); }, kOptional);
  io.number(key_at("device/sustained_clock"), model.sustained_clock, kEfficiencyRange, kOptional);
  io.number(key_at("device/narrow_sustained_clock"), model.narrow_sustained_clock, {0, 1.5},
            kOptional);
  io.number(key_at("device/streaming_efficiency"), model.streaming_efficiency, kEfficiencyRange,
            kOptional);
  io.number(key_at("device/reduction_efficiency"), model.reduction_efficiency, kEfficiencyRange,
            kOptional);
  io.number(key_at("device/flash_forward_efficiency"), model.flash_forward_efficiency,
            kEfficiencyRange, kOptional);
  io.number(key_at("device/flash_backward_efficiency"), model.flash_backward_efficiency,
            kEfficiencyRange, kOptional);
  io.object(
      key_at("device/attention_speeds"),
      [&](auto& inner) { kAttentionSpeedFields(inner, model.attention_speeds); }, kOptional);
  io.quantity(key_at("device/kernel_latency"), model.kernel_latency, kOptional);
};

inline constexpr auto kMachineFields = [](auto& io, auto& machine) {
  io.text(key_at("device/description"), machine.description);
  io.integer(key_at("device/devices"), machine.devices, {0, 1024});
  io.number(key_at("device/rank_jitter"), machine.rank_jitter, {0, 1});
};

inline constexpr auto kRuntimeFields = [](auto& io, auto& runtime) {
  constexpr NumberRange kAny{0, 1e6};
  io.quantity(key_at("device/launch"), runtime.launch, kOptional);
  io.quantity(key_at("device/launch_gap"), runtime.launch_gap, kOptional);
  io.quantity(key_at("device/empty_kernel"), runtime.empty_kernel, kOptional);
  io.quantity(key_at("device/upload"), runtime.upload, kOptional);
  io.quantity(key_at("device/download"), runtime.download, kOptional);
  io.quantity(key_at("device/context"), runtime.context, kOptional);
  io.number(key_at("device/burst_mhz"), runtime.burst_mhz, kAny, kOptional);
  io.number(key_at("device/sustained_mhz"), runtime.sustained_mhz, kAny, kOptional);
  io.number(key_at("device/sustained_watts"), runtime.sustained_watts, kAny, kOptional);
  io.number(key_at("device/sustained_celsius"), runtime.sustained_celsius, kAny, kOptional);
};

}  // namespace tpsim
