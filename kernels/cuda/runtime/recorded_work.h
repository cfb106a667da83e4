// Work on a stream that is captured once as a CUDA graph and then replayed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tpsim {

// Properties on which a captured graph depends: the addresses of its inputs, a counter that changes
// if memory of the graph was returned to the driver, and the bytes of live tensors. A tensor
// allocated after the capture may occupy memory that the graph overwrites.
struct RecordKey {
  std::vector<const void*> inputs;
  std::int64_t memory_changes = 0;
  std::int64_t tensor_bytes = 0;
  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

// Decides whether repeated work is issued, captured or replayed. No CUDA calls, so that tests need
// no GPU.
class RepeatPlan {
 public:
  enum class Action { kIssue, kRecord, kReplay };
  // Number of calls before a capture. They select algorithms, fill tables and allocate memory,
  // which waits for the device and cannot be captured.
  static constexpr int kWarmUp = 2;

  // Returns the action for the next call. kRecord replaces the captured graph.
  Action next(const RecordKey& key);

 private:
  int issued_ = 0;
  bool recorded_ = false;
  RecordKey key_;
};

class RecordedWork {
 public:
  RecordedWork() = default;
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

  // Captures `work` without running it, and replaces an earlier graph. Throws CudaFailure with the
  // reason if an operation cannot be captured.
  void record(cudaStream_t stream, const std::function<void()>& work);
  void start(cudaStream_t stream) const;

 private:
  void forget();

  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tpsim
