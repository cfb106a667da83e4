// What one kind of GPU (or CPU) does, op by op and collective by collective.
//
// A profile is written by `tpsim profile` on the machine itself (measured) or built from published
// tables (published) and datasheets. The simulator looks an op up here first and falls back on the
// few physical constants of DeviceModel, and says which it used.
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
  Bytes memory;                 // what the driver reports as total
  std::int64_t processors = 1;  // streaming multiprocessors; cores on a CPU
  FlopsPerSecond matmul_peak;   // dense, of `matmul_dtype`
  DType matmul_dtype = DType::kBFloat16;
  // Dense, of operands with a scale a tensor or a block of 128, with one for every 32, and of
  // NVFP4. Zero: the matrix units take none.
  FlopsPerSecond fp8_peak, mxfp8_peak, nvfp4_peak;
  FlopsPerSecond vector_peak;  // fp32 outside the matrix units
  BytesPerSecond memory_bandwidth;
  bool asynchronous = true;  // the host runs ahead of the device
};

// Dense rate of the matrix units for operands of this type; zero: they take none.
FlopsPerSecond matrix_peak(const DeviceFacts& device, DType operands);
// Types narrower than 16 bits that they take: "fp8, fp8_block".
std::string narrow_types_text(const DeviceFacts& device);
// What weights and activations are of unless a plan says otherwise: bf16 where the matrix units
// take it.
DType usual_dtype(const DeviceFacts& device);

// How a device's library cuts matrix products into tiles, as far as products differ by it.
struct MatmulTuning {
  double wave_rounding = 1.0;  // share of a partial wave's idle processors that is lost; below 1
                               // the library spreads the last tiles (stream-K)
  double small_tile_exponent = 0.3;  // a tile of area a runs at (a / largest area)^this of the rate
  double epilogue_exposed = 1.0;     // share of a wave's output writes that nothing hides
  double traffic_efficiency = 0.75;  // of memory bandwidth, reading operands and writing C
  // Share of the rate left when rows of an operand are no multiple of 16 bytes long.
  double unaligned_rate = 0.6;
  double unaligned_batched_rate = 0.6;
  // Time over that of y = x W^T of the same shape: dgrad (no transposes) and wgrad (A transposed).
  double nn_layout_factor = 1.0;
  double tn_layout_factor = 1.0;
  // Time that kSplitSums adds, over what 8-bit products of these FLOPs take at full rate.
  double split_sum_cost = 0;
};

// Speed of attention kernels over that of the one that the samples are of.
struct AttentionSpeeds {
  double flash1 = 0.55;  // FlashAttention-2 is 1.7 to 3 times as fast (Dao 2023, arXiv 2307.08691)
  double flash2 = 1.0;
  double flash3 = 1.0;  // where there is none
  double cudnn = 1.0;
};

// The constants that stand where no measured entry does.
struct DeviceModel {
  std::string source;
  Provenance provenance = Provenance::kDatasheet;
  double matmul_efficiency = 0.9;  // of peak x tile and wave bound, large products
  std::int64_t tile_m = 128;       // one processor's share of C
  std::int64_t tile_n = 256;
  Seconds matmul_latency;  // prologue, epilogue and launch of one product
  MatmulTuning matmul;
  double sustained_clock = 1.0;  // sustained over burst rate of products at full efficiency
  // The same of products of 8 and 4 bits, which draw less power at a rate; 0: as sustained_clock.
  double narrow_sustained_clock = 0;
  double streaming_efficiency = 0.8;      // of memory bandwidth, well-written elementwise kernels
  double reduction_efficiency = 0.7;      // norms and softmax
  double flash_forward_efficiency = 0.5;  // of matmul peak
  double flash_backward_efficiency = 0.4;
  AttentionSpeeds attention_speeds;
  Seconds kernel_latency;  // a kernel that does nothing
};

// What a profile file need not state of these: about the middle of the GPUs of data/profiles/.
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

// The machine that a profile was measured on, so that plans for it can be judged.
struct MachineFacts {
  std::string description;   // processor, cores, operating system
  std::int64_t devices = 0;  // of this kind in the machine; 0: not known
  // Standard deviation of a rank's step over its mean, all devices at work: adds to that of the
  // software.
  double rank_jitter = 0;
};

// What using a device takes beside the times of its ops, and how it ran while they were timed.
// Zero: not measured.
struct RuntimeFacts {
  Seconds launch;            // of the host, until it has issued a kernel
  Seconds launch_gap;        // between two kernels of one stream, the host being ahead
  Seconds empty_kernel;      // a kernel that does next to nothing
  BytesPerSecond upload;     // from page-locked memory of the host
  BytesPerSecond download;   // to it
  Bytes context;             // in use, says the driver, beyond what tensors were cut from
  double burst_mhz = 0;      // clock of the processors during short work
  double sustained_mhz = 0;  // after a while of matrix products
  double sustained_watts = 0;
  double sustained_celsius = 0;
};

// Algorithms that a device's library was found to be fastest with, as text for the same library on
// the same kind of device.
struct AlgorithmChoices {
  std::string chosen_by;  // library, version and device; empty: nothing was chosen
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
  bool burst_clocks = false;  // op samples were timed in short bursts
  RuntimeFacts runtime;
  AlgorithmChoices algorithms;
  std::vector<OpSample> ops;
  // Of ops that are also among `ops`, after enough work for the device to get as hot, and as slow,
  // as in training.
  std::vector<OpSample> sustained;
  std::vector<CollectiveSample> collectives;
  // What connected the devices when those were timed. Without bandwidth where nobody said: then
  // they are taken as timed on the link of the cluster that is asked about.
  LinkSpec link;
};

}  // namespace tpsim
