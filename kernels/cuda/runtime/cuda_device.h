// One NVIDIA GPU as a device: cuBLASLt GEMMs and the kernels of this folder, on one stream.
//
// Ops are asynchronous. Arithmetic is fp32 for every dtype, and sums have a fixed order, so that
// equal inputs give bit-equal results (for GEMMs, with the same selected algorithms). A process has
// one device, which one thread uses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/cuda/runtime/recorded_work.h"
#include "kernels/device.h"

namespace tpsim {

// Ring of page-locked staging buffers for small uploads, so that uploads do not wait for the
// device.
class PinnedRing {
 public:
  static constexpr std::size_t kPlaces = 32;
  static constexpr std::size_t kPlaceBytes = 256 << 10;

  PinnedRing() = default;
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // Copies `from` (at most kPlaceBytes) to a staging buffer, issues the copy to the device and
  // returns. Waits only if kPlaces uploads are in flight.
  void upload(std::span<const std::byte> from, void* to, cudaStream_t stream);

 private:
  std::byte* memory_ = nullptr;
  std::vector<cudaEvent_t> done_;  // end of the last upload from each buffer
  std::size_t next_ = 0;
};

class CudaDevice final : public Device {
 public:
  bool computes_all() const override { return false; }
  std::string refusal_reason(Precision recipe) const override;
  // `index` counts the GPUs visible to this process. kMissing, with the reason, if there is no GPU,
  // no driver or no cuBLASLt.
  static Result<std::unique_ptr<CudaDevice>> create(int index = 0);
  ~CudaDevice() override;

  void upload(std::span<const std::byte> from, const Tensor& to) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void synchronize() override;

  DeviceMark mark() override;
  double seconds_between(DeviceMark earlier, DeviceMark later) override;
  void forget_marks() override { marks_ = 0; }
  bool delay(double seconds) override;

  // Enables CUDA graphs.
  Status start_recording() override;
  bool records() const override { return records_; }
  void repeat(const std::function<void()>& work, std::span<const Tensor> inputs,
              int variant) override;

  AlgorithmChoices algorithms() const override;
  void use_algorithms(const AlgorithmChoices& earlier) override;
  // Returns the memory in use on this GPU in bytes, including other processes.
  std::int64_t used_bytes() const override { return driver_memory().used; }

  // Memory for the internal buffers of a communicator, not accounted as tensors. Throws
  // OutOfDeviceMemory.
  void* acquire_unrecorded(std::int64_t bytes) { return acquire(bytes); }
  void give_back_unrecorded(void* data) { state_->memory.give_back(data); }

  // Reserves `more` additional SMs for kernels on other streams; a negative number releases SMs.
  // Otherwise such kernels wait for the end of a GEMM that occupies all SMs, at any stream
  // priority.
  void spare_multiprocessors(int more) { state_->spared += more; }

  cudaStream_t stream() const { return state_->stream; }
  const GpuLimits& limits() const { return state_->limits; }
  // Statistics of the caching allocator.
  const BlockCache& memory() const { return state_->memory; }
  // Selected algorithms of GEMMs.
  MatmulPlans& matmuls() { return state_->matmuls; }

 protected:
  void execute(const Op& op) override;
  void* acquire(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) override;

 private:
  // Returns a counter that changes if memory that a CUDA graph may use is returned to the driver.
  std::int64_t memory_changes() const;

  explicit CudaDevice(std::unique_ptr<CudaState> state) : state_(std::move(state)) {}

  std::unique_ptr<CudaState> state_;
  PinnedRing uploads_;
  bool records_ = false;
  struct Repeated {
    RepeatPlan plan;
    RecordedWork record;
  };
  std::map<int, Repeated> repeated_;  // by variant
  std::vector<cudaEvent_t> events_;
  std::size_t marks_ = 0;  // events of events_ in use
};

// Environment variable that sets CUDA's number of hardware queues (default 8, maximum 32).
inline constexpr const char* kQueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
inline constexpr int kMostQueues = 32;

// Returns the number of GPUs visible to this process, or 0 with a reason. Creates no context. Sets
// CUDA_DEVICE_MAX_CONNECTIONS to kMostQueues unless it is set.
struct GpuCount {
  int gpus = 0;
  std::string why_none;
};
GpuCount visible_gpus();
// Returns the error for a machine without GPU.
Error no_gpu(const std::string& why);

}  // namespace tpsim
