#include "kernels/cuda/runtime/recorded_work.h"

#include <exception>
#include <string>

#include "kernels/cuda/runtime/cuda_check.h"

namespace tpsim {
namespace {

// Ends the capture even after a failure, because the stream would otherwise remain unusable.
cudaGraph_t ended(cudaStream_t stream, std::exception_ptr failure) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  if (failure == nullptr && error == cudaSuccess) return graph;
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
  std::string reason = cudaGetErrorString(error);
  try {
    if (failure != nullptr) std::rethrow_exception(failure);
  } catch (const CudaFailure& why) {
    reason = why.what();
  }
  throw CudaFailure("a micro-batch cannot be recorded as a CUDA graph: " + reason);
}

}  // namespace

RepeatPlan::Action RepeatPlan::next(const RecordKey& key) {
  if (recorded_ && key == key_) return Action::kReplay;
  if (issued_ < kWarmUp) {
    ++issued_;
    return Action::kIssue;
  }
  recorded_ = true;
  key_ = key;
  return Action::kRecord;
}

RecordedWork::~RecordedWork() { forget(); }

void RecordedWork::forget() {
  if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
  executable_ = nullptr;
}

// Captures in relaxed mode, so that other threads of this process may use the GPU meanwhile.
void RecordedWork::record(cudaStream_t stream, const std::function<void()>& work) {
  forget();
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording a graph");
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  cudaGraph_t graph = ended(stream, failure);
  const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check_cuda(error, "making a CUDA graph of a micro-batch");
}

void RecordedWork::start(cudaStream_t stream) const {
  check_cuda(cudaGraphLaunch(executable_, stream), "starting a CUDA graph");
}

}  // namespace tpsim
