#include "kernels/cuda/runtime/gpu_state.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {
namespace {

// Declarations of the NVML functions in use, since the toolkits lack NVML's header. They have not
// changed since NVML 4. All return 0 on success.
struct Nvml {
  int (*init)() = nullptr;
  int (*by_bus)(const char* bus, void** gpu) = nullptr;
  int (*clock)(void* gpu, int kind, unsigned* mhz) = nullptr;
  int (*power)(void* gpu, unsigned* milliwatts) = nullptr;
  int (*temperature)(void* gpu, int sensor, unsigned* celsius) = nullptr;
};
constexpr int kMultiprocessorClock = 1;
constexpr int kGpuSensor = 0;

Result<Nvml> opened_nvml() {
  TPSIM_TRY(const SharedLibrary library, SharedLibrary::open("NVML", {"libnvidia-ml.so.1"}));
  Nvml nvml;
  TPSIM_TRY_STATUS(library.find("nvmlInit_v2", nvml.init));
  TPSIM_TRY_STATUS(library.find("nvmlDeviceGetHandleByPciBusId_v2", nvml.by_bus));
  TPSIM_TRY_STATUS(library.find("nvmlDeviceGetClockInfo", nvml.clock));
  TPSIM_TRY_STATUS(library.find("nvmlDeviceGetPowerUsage", nvml.power));
  TPSIM_TRY_STATUS(library.find("nvmlDeviceGetTemperature", nvml.temperature));
  if (const int code = nvml.init(); code != 0) {
    return Error{ErrorKind::kMissing, fmt::format("NVML initialization failed with code {}", code),
                 "", ""};
  }
  return nvml;
}

const Result<Nvml>& nvml() {
  static const Result<Nvml> library = opened_nvml();
  return library;
}

}  // namespace

Result<GpuWatch> GpuWatch::open() {
  if (!nvml().ok()) return nvml().error();
  int index = 0;
  check_cuda(cudaGetDevice(&index), "cudaGetDevice");
  std::array<char, 32> bus{};
  check_cuda(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index), "PCI address");
  void* gpu = nullptr;
  if (const int code = nvml()->by_bus(bus.data(), &gpu); code != 0) {
    return Error{
        ErrorKind::kMissing,
        fmt::format("NVML finds no GPU at the PCI address {} (error code {})", bus.data(), code),
        "", ""};
  }
  return GpuWatch(gpu);
}

std::optional<GpuState> GpuWatch::state() const {
  unsigned mhz = 0, milliwatts = 0, celsius = 0;
  const bool known = nvml()->clock(gpu_, kMultiprocessorClock, &mhz) == 0 &&
                     nvml()->power(gpu_, &milliwatts) == 0 &&
                     nvml()->temperature(gpu_, kGpuSensor, &celsius) == 0;
  if (!known) return std::nullopt;
  return GpuState{static_cast<double>(mhz), milliwatts * 1e-3, static_cast<double>(celsius)};
}

}  // namespace tpsim
