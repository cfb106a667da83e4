// What one kind of GPU (or CPU) does, op by op and collective by collective.
//
// A profile is written by `tpsim profile` on the machine itself (measured) or built from published
// tables (published) and datasheets. The simulator looks an op up here first and falls back on the
// few physical constants of DeviceModel, and says which it used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/program.h"
#include "core/units.h"

namespace tpsim {

enum class Provenance : std::uint8_t { kMeasuredHere, kPublished, kDatasheet };
std::string_view name_of(Provenance);

struct DeviceFacts {
  std::string name;
  std::string source;
  Bytes memory;                 // what the driver reports as total
  std::int64_t processors = 1;  // streaming multiprocessors; cores on a CPU
  FlopsPerSecond matmul_peak;   // dense, of `matmul_dtype`
  DType matmul_dtype = DType::kBFloat16;
  FlopsPerSecond vector_peak;  // fp32 outside the matrix units
  BytesPerSecond memory_bandwidth;
  bool asynchronous = true;  // the host runs ahead of the device
};

// The constants that stand where no measured entry does.
struct DeviceModel {
  std::string source;
  Provenance provenance = Provenance::kDatasheet;
  double matmul_efficiency = 0.9;     // of peak x tile and wave bound, large products
  std::int64_t tile_m = 128;          // one processor's share of C
  std::int64_t tile_n = 256;
  Seconds matmul_latency;             // prologue, epilogue and launch of one product
  double sustained_clock = 1.0;       // sustained over burst rate: training is sustained
  double streaming_efficiency = 0.8;  // of memory bandwidth, well-written elementwise kernels
  double reduction_efficiency = 0.7;  // norms and softmax
  double flash_forward_efficiency = 0.5;  // of matmul peak
  double flash_backward_efficiency = 0.4;
  Seconds kernel_latency;  // a kernel that does nothing
};

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

struct Profile {
  std::string name;
  std::string source;
  std::string date;
  Provenance provenance = Provenance::kDatasheet;
  DeviceFacts device;
  DeviceModel model;
  bool burst_clocks = false;  // op samples were timed in short bursts
  std::vector<OpSample> ops;
  std::vector<CollectiveSample> collectives;
};

}  // namespace tpsim
