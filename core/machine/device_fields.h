// Fields of a profile file that describe the GPU, the machine, and the model of kernels without
// sample.
#pragma once

#include "core/json/json_fields.h"
#include "core/machine/profile.h"

namespace tpsim {

inline constexpr NumberRange kEfficiencyRange{1e-6,
                                              1.5};  // efficiencies; a fit may slightly exceed 1

inline constexpr auto kDeviceFields = [](auto& io, auto& device) {
  io.text({"name", "name of the GPU"}, device.name);
  io.text({"source", "source of the properties"}, device.source);
  io.quantity({"memory", "total GPU memory as the driver reports it"}, device.memory);
  io.integer({"processors", "streaming multiprocessors (GPU) or cores"}, device.processors, {});
  io.quantity({"matmul_peak", "dense peak of GEMMs in matmul_dtype"}, device.matmul_peak);
  io.choice({"matmul_dtype", "dtype of the operands for which matmul_peak holds"},
            device.matmul_dtype, {DType::kFloat32, DType::kBFloat16, DType::kFloat16});
  io.quantity({"fp8_peak", "dense peak of GEMMs in fp8; omitted: not supported"}, device.fp8_peak,
              kOptional);
  io.quantity({"mxfp8_peak",
               "dense peak of GEMMs in MXFP8 (a scale per 32 elements); omitted: not supported"},
              device.mxfp8_peak, kOptional);
  io.quantity({"nvfp4_peak", "dense peak of GEMMs in NVFP4; omitted: not supported"},
              device.nvfp4_peak, kOptional);
  io.quantity({"vector_peak", "peak of fp32 arithmetic without tensor cores"}, device.vector_peak);
  io.quantity({"memory_bandwidth", "peak memory bandwidth"}, device.memory_bandwidth);
  io.quantity({"measured_bandwidth",
               "memory bandwidth of the GPU that timed the GEMM samples [memory_bandwidth]"},
              device.measured_bandwidth, kOptional);
  io.flag({"asynchronous", "kernels run asynchronously to the host"}, device.asynchronous);
  io.require(device.memory.value() > 0, "memory", "it must be above zero");
  io.require(device.matmul_peak.value() > 0, "matmul_peak", "it must be above zero");
  io.require(device.vector_peak.value() > 0, "vector_peak", "it must be above zero");
  io.require(device.memory_bandwidth.value() > 0, "memory_bandwidth", "it must be above zero");
};

inline constexpr auto kMatmulFields = [](auto& io, auto& matmul) {
  constexpr NumberRange kFraction{0, 1};
  io.number({"wave_rounding",
             "wave quantization: share of the idle SM time of a partial wave that is lost; below 1 "
             "with split-K or stream-K [0.1]"},
            matmul.wave_rounding, kFraction, kOptional);
  io.number(
      {"small_tile_exponent",
       "a tile of area a reaches (a / area of the largest tile) ^ this number of the rate [0.05]"},
      matmul.small_tile_exponent, {0, 2}, kOptional);
  io.number({"epilogue_exposed",
             "share of the time of output writes that does not overlap with compute [0.55]"},
            matmul.epilogue_exposed, {0, 2}, kOptional);
  io.number({"traffic_efficiency",
             "share of the memory bandwidth that GEMMs achieve for operands and output [0.8]"},
            matmul.traffic_efficiency, kEfficiencyRange, kOptional);
  io.number(
      {"unaligned_rate",
       "relative rate of GEMMs with an operand whose rows are not a multiple of 16 bytes [0.68]"},
      matmul.unaligned_rate, kEfficiencyRange, kOptional);
  io.number({"unaligned_batched_rate", "unaligned_rate of batched GEMMs [0.68]"},
            matmul.unaligned_batched_rate, kEfficiencyRange, kOptional);
  io.number({"nn_layout_factor",
             "time of dgrad GEMMs (no transposed operand), relative to forward GEMMs of the same "
             "size [1]"},
            matmul.nn_layout_factor, {0.1, 10}, kOptional);
  io.number({"tn_layout_factor",
             "time of wgrad GEMMs (first operand transposed), relative to forward GEMMs of the "
             "same size [1]"},
            matmul.tn_layout_factor, {0.1, 10}, kOptional);
  io.number({"split_sum_cost",
             "additional time of 8-bit GEMMs whose partial sums are promoted to fp32, relative to "
             "the GEMM at full rate [0]"},
            matmul.split_sum_cost, {0, 10}, kOptional);
};

inline constexpr auto kAttentionSpeedFields = [](auto& io, auto& speeds) {
  io.number({"flash1", "relative speed of FlashAttention 1"}, speeds.flash1, {0.01, 10});
  io.number({"flash2", "relative speed of FlashAttention 2"}, speeds.flash2, {0.01, 10});
  io.number({"flash3", "relative speed of FlashAttention 3; 1 if the GPU has no such kernel"},
            speeds.flash3, {0.01, 10});
  io.number({"cudnn", "relative speed of cuDNN's fused attention"}, speeds.cudnn, {0.01, 10});
};

inline constexpr auto kModelFields = [](auto& io, auto& model) {
  io.text({"source", "source of the constants"}, model.source, kOptional);
  io.choice({"provenance", "origin of the constants, as provenance of the profile"},
            model.provenance,
            {Provenance::kMeasuredHere, Provenance::kPublished, Provenance::kDatasheet});
  io.number({"matmul_efficiency",
             "rate of large GEMMs, relative to the peak after tile and wave quantization [0.78]"},
            model.matmul_efficiency, kEfficiencyRange, kOptional);
  io.integer({"tile_m", "rows of the output tile that one SM computes [128]"}, model.tile_m, {},
             kOptional);
  io.integer({"tile_n", "columns of the output tile that one SM computes [256]"}, model.tile_n, {},
             kOptional);
  io.quantity({"matmul_latency",
               "time of one GEMM in addition to its tiles: launch, prologue and epilogue [2.5 us]"},
              model.matmul_latency, kOptional);
  io.object(
      {"matmul", "constants of the GEMM time model"},
      [&](auto& inner) { kMatmulFields(inner, model.matmul); }, kOptional);
  io.number({"sustained_clock",
             "rate of GEMMs at the clock sustained in training, relative to the rate at burst "
             "clock [0.9]"},
            model.sustained_clock, kEfficiencyRange, kOptional);
  io.number({"narrow_sustained_clock",
             "sustained_clock of 8-bit and 4-bit GEMMs; 0: same as sustained_clock [0]"},
            model.narrow_sustained_clock, {0, 1.5}, kOptional);
  io.number({"streaming_efficiency",
             "share of the memory bandwidth that elementwise kernels achieve [0.85]"},
            model.streaming_efficiency, kEfficiencyRange, kOptional);
  io.number({"reduction_efficiency",
             "share of the memory bandwidth that norm and softmax kernels achieve [0.75]"},
            model.reduction_efficiency, kEfficiencyRange, kOptional);
  io.number({"flash_forward_efficiency",
             "share of the GEMM peak that fused attention achieves in forward [0.65]"},
            model.flash_forward_efficiency, kEfficiencyRange, kOptional);
  io.number({"flash_backward_efficiency",
             "share of the GEMM peak that fused attention achieves in backward [0.53]"},
            model.flash_backward_efficiency, kEfficiencyRange, kOptional);
  io.object(
      {"attention_speeds",
       "speed of attention kernels, relative to the fused kernel of the samples [flash1 0.55, "
       "others 1]"},
      [&](auto& inner) { kAttentionSpeedFields(inner, model.attention_speeds); }, kOptional);
  io.quantity({"kernel_latency", "time of an empty kernel [2.5 us]"}, model.kernel_latency,
              kOptional);
};

inline constexpr auto kMachineFields = [](auto& io, auto& machine) {
  io.text({"description", "GPU and driver, or processor, cores and operating system"},
          machine.description);
  io.integer({"devices", "number of such GPUs in the machine; 0: unknown"}, machine.devices,
             {0, 1024});
  io.number({"rank_jitter",
             "relative standard deviation of a rank's step time while all GPUs work; on this "
             "machine, added in quadrature to rank_jitter of the stack"},
            machine.rank_jitter, {0, 1});
};

inline constexpr auto kRuntimeFields = [](auto& io, auto& runtime) {
  constexpr NumberRange kAny{0, 1e6};
  io.quantity({"launch",
               "host time per kernel launch; replaces host.per_op of the stacks reference and "
               "reference-cpu"},
              runtime.launch, kOptional);
  io.quantity(
      {"launch_gap", "GPU idle time between two kernels of a stream while the host runs ahead"},
      runtime.launch_gap, kOptional);
  io.quantity({"empty_kernel", "GPU time of a nearly empty kernel"}, runtime.empty_kernel,
              kOptional);
  io.quantity({"upload", "bandwidth of copies from pinned host memory to the GPU"}, runtime.upload,
              kOptional);
  io.quantity({"download", "bandwidth of copies from the GPU to pinned host memory"},
              runtime.download, kOptional);
  io.quantity({"context",
               "GPU memory in use in addition to tensors; replaces memory.context of the stacks "
               "reference and reference-cpu"},
              runtime.context, kOptional);
  io.number({"burst_mhz", "SM clock in MHz during short work"}, runtime.burst_mhz, kAny, kOptional);
  io.number({"sustained_mhz", "SM clock in MHz under sustained GEMMs"}, runtime.sustained_mhz, kAny,
            kOptional);
  io.number({"sustained_watts", "GPU power in W under sustained GEMMs"}, runtime.sustained_watts,
            kAny, kOptional);
  io.number({"sustained_celsius", "GPU temperature in degrees Celsius under sustained GEMMs"},
            runtime.sustained_celsius, kAny, kOptional);
};

}  // namespace tpsim
