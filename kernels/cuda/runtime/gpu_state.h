// Current clock, power and temperature of the GPU, read from the driver's management library
// (NVML).
#pragma once

#include <optional>

#include "core/base/result.h"

namespace tpsim {

struct GpuState {
  double mhz = 0;  // SM clock
  double watts = 0;
  double celsius = 0;
};

class GpuWatch {
 public:
  // Opens NVML for the GPU that this process uses. kMissing if NVML is not installed or does not
  // list the GPU.
  static Result<GpuWatch> open();
  // Returns nothing if NVML reports an error.
  std::optional<GpuState> state() const;

 private:
  explicit GpuWatch(void* gpu) : gpu_(gpu) {}
  void* gpu_;  // handle of NVML, valid until the process ends
};

}  // namespace tpsim
