#include "kernels/cuda/runtime/host_costs.h"

#include <algorithm>
#include <chrono>

#include "kernels/cuda/runtime/cuda_check.h"

namespace tpsim {
namespace {

constexpr Label kProbe{ModelPart::kMeasurement, "launches"};

// Page-locked host memory.
class LockedMemory {
 public:
  explicit LockedMemory(std::size_t bytes) {
    check_cuda(cudaMallocHost(&data_, bytes), "cudaMallocHost");
  }
  ~LockedMemory() { static_cast<void>(cudaFreeHost(data_)); }
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

double launch_seconds(CudaDevice& device) {
  constexpr int kLaunches = 1000;  // fewer than the launch queue holds before the host blocks
  const Tensor x = device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, kProbe.text);
  device.run(Fill{x, 0.0F, kProbe});
  device.synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) device.run(Fill{x, 0.0F, kProbe});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  device.synchronize();
  return elapsed.count() / kLaunches;
}

// Returns the bandwidth of the fastest of a few copies, in bytes per second.
double copy_rate(CudaDevice& device, void* to, const void* from, std::size_t bytes) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const DeviceMark start = device.mark();
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device.stream()), "a copy");
    const double seconds = device.seconds_between(start, device.mark());
    best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  device.forget_marks();
  return best;
}

}  // namespace

Result<LaunchGap> measured_launch_gap(CudaDevice& device) {
  constexpr int kLaunches = 200;
  constexpr double kAhead = 10e-6 * kLaunches;  // more than the host takes to issue the ops
  const Tensor x = device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, kProbe.text);
  TPSIM_TRY(std::vector<KernelSpan> kernels, traced_kernels(device, [&] {
              device.delay(kAhead);
              for (int i = 0; i < kLaunches; ++i) device.run(Fill{x, 0.0F, kProbe});
            }));
  if (!kernels.empty()) kernels.erase(kernels.begin());  // the delay
  return launch_gap_of(kernels);
}

HostCosts host_costs(CudaDevice& device) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const LockedMemory host(kBytes);
  const Tensor on_gpu =
      device.allocate({kBytes / 4}, DType::kFloat32, MemoryCategory::kWorkspace, "copies");
  return {launch_seconds(device), copy_rate(device, on_gpu.raw(), host.data(), kBytes),
          copy_rate(device, host.data(), on_gpu.raw(), kBytes)};
}

}  // namespace tpsim
