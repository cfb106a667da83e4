// What the driver's management library (NVML) says of the GPU at this moment.
#pragma once

#include <optional>

#include "core/base/result.h"

namespace tpsim {

struct GpuState {
  double mhz = 0;  // of the multiprocessors
  double watts = 0;
  double celsius = 0;
};

class GpuWatch {
 public:
  // Of the GPU that this process uses. kMissing when NVML is not here or does not know it.
  static Result<GpuWatch> open();
  // Nothing when NVML does not say.
  std::optional<GpuState> state() const;

 private:
  explicit GpuWatch(void* gpu) : gpu_(gpu) {}
  void* gpu_;  // NVML's handle, good for the life of the process
};

}  // namespace tpsim
