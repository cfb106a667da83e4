// One NVIDIA GPU as a device: cuBLASLt products and the kernels of this folder, on one stream.
//
// Ops return when they are issued. Arithmetic is in fp32 whatever the tensors' dtype, sums are
// added in a fixed order, so ops that are given the same values give the same bits (matrix
// products: while the same algorithms are chosen). One device per process; it is used by one
// thread.
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

// Page-locked memory that small uploads pass through, so that they need not wait for what the
// device is doing.
class PinnedRing {
 public:
  static constexpr std::size_t kPlaces = 32;
  static constexpr std::size_t kPlaceBytes = 256 << 10;

  PinnedRing() = default;
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // Issues the copy and returns, `from` being read. At most kPlaceBytes; waits only when the device
  // is kPlaces uploads behind.
  void upload(std::span<const std::byte> from, void* to, cudaStream_t stream);

 private:
  std::byte* memory_ = nullptr;
  std::vector<cudaEvent_t> done_;  // of each place that has been used
  std::size_t next_ = 0;
};

class CudaDevice final : public Device {
 public:
  bool computes_all() const override { return false; }
  std::string refusal_reason(Precision recipe) const override;
  // `index` among the GPUs that this process sees. kMissing, with the reason, when there is no GPU,
  // no driver, or no cuBLASLt.
  static Result<std::unique_ptr<CudaDevice>> create(int index = 0);
  ~CudaDevice() override;

  void upload(std::span<const std::byte> from, const Tensor& to) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void synchronize() override;

  DeviceMark mark() override;
  double seconds_between(DeviceMark earlier, DeviceMark later) override;
  void forget_marks() override { marks_ = 0; }
  bool delay(double seconds) override;

  // Records CUDA graphs from now on.
  Status start_recording() override;
  bool records() const override { return records_; }
  void repeat(const std::function<void()>& work, std::span<const Tensor> inputs,
              int variant) override;

  AlgorithmChoices algorithms() const override;
  void use_algorithms(const AlgorithmChoices& earlier) override;
  // Everything in use on this GPU, by other processes too.
  std::int64_t used_bytes() const override { return driver_memory().used; }

  // Memory for a communicator's own buffers, outside the count of tensors. Throws
  // OutOfDeviceMemory.
  void* acquire_unrecorded(std::int64_t bytes) { return acquire(bytes); }
  void give_back_unrecorded(void* data) { state_->memory.give_back(data); }

  // From now on products leave so many multiprocessors more (fewer, if negative) to kernels of
  // other streams: a product that occupies all of them would run to its end first, whatever the
  // streams' priorities.
  void spare_multiprocessors(int more) { state_->spared += more; }

  cudaStream_t stream() const { return state_->stream; }
  const GpuLimits& limits() const { return state_->limits; }
  // Counts of the allocator: sizes that were cut for tensors, and what was asked of the driver.
  const BlockCache& memory() const { return state_->memory; }
  // The algorithms that were chosen for matrix products; also to be told them.
  MatmulPlans& matmuls() { return state_->matmuls; }

 protected:
  void execute(const Op& op) override;
  void* acquire(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) override;

 private:
  // Grows whenever memory that a record may use has been given away.
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

// CUDA's number of hardware queues, of which it has 8 unless told otherwise and 32 at most.
inline constexpr const char* kQueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
inline constexpr int kMostQueues = 32;

// How many GPUs this process sees; 0 with the reason when none. Starts no context. Asks CUDA for
// kMostQueues unless the environment says otherwise.
struct GpuCount {
  int gpus = 0;
  std::string why_none;
};
GpuCount visible_gpus();
// What is said then.
Error no_gpu(const std::string& why);

}  // namespace tpsim
