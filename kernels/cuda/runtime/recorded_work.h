// Work on a stream that is issued once, recorded as a CUDA graph, and then started as a whole.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tpsim {

// What a record depends on besides the code that issued it: where its inputs lie, and that the
// allocator still holds the memory that it uses between times.
struct RecordKey {
  std::vector<const void*> inputs;
  std::int64_t memory_changes = 0;
  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

// What to do with work that comes again. Pure bookkeeping, so that it is tested without a GPU.
class RepeatPlan {
 public:
  enum class Action { kIssue, kRecord, kReplay };
  // Algorithms are chosen, tables filled and memory acquired in the first turns, which wait for the
  // device; none of that can be recorded.
  static constexpr int kWarmUp = 2;

  // The next turn's action; kRecord replaces the record.
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

  // Issues `work` to nothing but the record, in place of an earlier one. Throws CudaFailure with
  // the reason when something in it cannot be recorded.
  void record(cudaStream_t stream, const std::function<void()>& work);
  void start(cudaStream_t stream) const;

 private:
  void forget();

  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tpsim
