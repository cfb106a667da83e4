// Times of ops and collectives on one kind of GPU (or CPU).
//
// `tpsim profile` writes a profile on the machine itself (measured). Other profiles are built from
// published tables (published) and datasheets. The simulator looks an op up here first, then falls
// back on the constants of DeviceModel. The report prints which source was used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/units.h"
#include "core/machine/link_spec.h"
#include "core/program/program.h"

namespace tpsim {

enum class Provenance : std::uint8_t { kMeasuredHere, kPublished, kDatasheet };
template <>
inline constexpr auto kEnumNames<Provenance> = words<3>("measured published datasheet");

struct DeviceFacts {
  std::string name;
  std::string source;
  Bytes memory;                 // total, as the driver reports it
  std::int64_t processors = 1;  // streaming multiprocessors; cores on a CPU
  FlopsPerSecond matmul_peak;   // dense, for `matmul_dtype`
  DType matmul_dtype = DType::kBFloat16;
  // Dense peaks of 8- and 4-bit operands: fp8 (a scale per tensor or per block of 128), MXFP8 (a
  // scale per 32 elements) and NVFP4. Zero: not supported.
  FlopsPerSecond fp8_peak, mxfp8_peak, nvfp4_peak;
  FlopsPerSecond vector_peak;  // fp32 outside the matrix units
  BytesPerSecond memory_bandwidth;
  // Memory bandwidth of the GPU that timed the GEMM samples. Zero: memory_bandwidth. Files that do
  // not state it get their memory_bandwidth, so that it stays if that is changed later.
  BytesPerSecond measured_bandwidth;
  bool asynchronous = true;  // the host runs ahead of the device
};

// Dense peak of the matrix units for operands of this dtype; zero if not supported.
FlopsPerSecond matrix_peak(const DeviceFacts& device, DType operands);
// Supported dtypes below 16 bits: "fp8, fp8_block".
std::string narrow_types_text(const DeviceFacts& device);
// Default dtype of weights and activations: bf16 if the matrix units support it.
DType usual_dtype(const DeviceFacts& device);

// Constants of the GEMM time model: tiles, waves and layouts.
struct MatmulTuning {
  double wave_rounding = 1.0;  // wave quantization: share of a partial wave's idle SMs that is
                               // lost; below 1 with stream-K
  double small_tile_exponent = 0.3;  // a tile of area a reaches (a / largest area)^this of the rate
  double epilogue_exposed = 1.0;     // share of a wave's output writes that is exposed
  double traffic_efficiency = 0.75;  // share of memory bandwidth that a GEMM reaches for A, B and C
  // Relative rate of GEMMs, and of batched GEMMs, with an operand whose rows are not a multiple of
  // 16 bytes.
  double unaligned_rate = 0.6;
  double unaligned_batched_rate = 0.6;
  // GEMM time relative to the forward layout, y = x W^T. nn: dgrad, no transposes. tn: wgrad, A
  // transposed.
  double nn_layout_factor = 1.0;
  double tn_layout_factor = 1.0;
  // Additional time of GEMMs with kSplitSums (sums promoted to fp32), relative to an 8-bit GEMM of
  // the same FLOPs at full rate.
  double split_sum_cost = 0;
};

// Speed of attention kernels relative to the kernel of the profile's samples.
struct AttentionSpeeds {
  double flash1 = 0.55;  // FlashAttention-2 is 1.7 to 3 times as fast (Dao 2023, arXiv 2307.08691)
  double flash2 = 1.0;
  double flash3 = 1.0;  // 1 if the device has no such kernel
  double cudnn = 1.0;
};

// Constants for ops without a measured entry.
struct DeviceModel {
  std::string source;
  Provenance provenance = Provenance::kDatasheet;
  double matmul_efficiency = 0.9;  // of large GEMMs, relative to peak x tile and wave bound
  std::int64_t tile_m = 128;       // tile of C per SM
  std::int64_t tile_n = 256;
  Seconds matmul_latency;  // prologue, epilogue and launch of one GEMM
  MatmulTuning matmul;
  double sustained_clock = 1.0;  // sustained over burst rate of GEMMs at full efficiency
  // sustained_clock of 8- and 4-bit GEMMs, which draw less power. 0: the same as sustained_clock.
  double narrow_sustained_clock = 0;
  double streaming_efficiency = 0.8;  // of memory bandwidth, for well-written elementwise kernels
  double reduction_efficiency = 0.7;  // the same for norms and softmax
  double flash_forward_efficiency = 0.5;  // of matmul peak
  double flash_backward_efficiency = 0.4;
  AttentionSpeeds attention_speeds;
  Seconds kernel_latency;  // of an empty kernel
};

// Defaults for constants that a profile file does not state: about the middle of the GPUs of
// data/profiles/.
DeviceModel usual_model();

struct OpSample {
  OpKey key;
  Seconds median;
  double spread = 0;  // median absolute deviation over median
  int count = 1;
};

struct CollectiveSample {
  CollectiveKind kind{};
  std::int64_t ranks = 2;  // on one node
  Bytes bytes;             // as in CollectiveRecord
  Seconds median;
};

// The machine on which the profile was measured.
struct MachineFacts {
  std::string description;   // processor, cores, operating system
  std::int64_t devices = 0;  // of this kind in the machine; 0: unknown
  // Standard deviation of a rank's step time over its mean, while all devices work. Added to the
  // jitter of the software stack.
  double rank_jitter = 0;
};

// Measured runtime overheads of the device, and its clocks during the measurement. Zero: not
// measured.
struct RuntimeFacts {
  Seconds launch;            // host time to launch a kernel
  Seconds launch_gap;        // between two kernels of one stream while the host runs ahead
  Seconds empty_kernel;      // a nearly empty kernel
  BytesPerSecond upload;     // from pinned host memory
  BytesPerSecond download;   // to pinned host memory
  Bytes context;             // memory in use according to the driver, beyond the tensor allocations
  double burst_mhz = 0;      // SM clock during short work
  double sustained_mhz = 0;  // SM clock after a while of GEMMs
  double sustained_watts = 0;
  double sustained_celsius = 0;
};

// Fastest GEMM algorithms found, each as text that the same library can read back on the same kind
// of device.
struct AlgorithmChoices {
  std::string chosen_by;  // library, version and device; empty: no choices
  std::vector<std::string> choices;
};

struct Profile {
  std::string name;
  std::string source;
  std::string date;
  Provenance provenance = Provenance::kDatasheet;
  MachineFacts machine;
  DeviceFacts device;
  DeviceModel model;
  bool burst_clocks = false;  // op samples were timed in short bursts, at burst clocks
  RuntimeFacts runtime;
  AlgorithmChoices algorithms;
  std::vector<OpSample> ops;
  // Times of ops that are also in `ops`, measured after enough work to reach the temperature and
  // clocks of training.
  std::vector<OpSample> sustained;
  std::vector<CollectiveSample> collectives;
  // Link between the devices on which `collectives` were timed. Bandwidth 0: unknown, and the link
  // of the predicted cluster is assumed.
  LinkSpec link;
};

}  // namespace tpsim
