// The CUDA runtime functions that tpsim calls, on the host; runtime_memory.cc has those of memory.
//
// The GPU has Hopper's architecture with few SMs and little memory. Invalid calls return CUDA's
// errors: launch shapes, unallocated memory, waiting while a stream is captured.
#include "tests/emulated_gpu/runtime.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/emulated_gpu/counts.h"
#include "tests/emulated_gpu/launch.h"
#include "tests/emulated_gpu/stream.h"

namespace tpsim::emulated {
namespace {

constexpr int kGpus = 8;
constexpr int kMultiprocessors = 6;
constexpr int kCache = 1 << 20;
constexpr std::size_t kSharedWithoutAsking = 48 << 10;

struct Event {
  std::shared_ptr<Completion> last;
};
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

struct Graph {
  std::vector<Work> work;
};

thread_local cudaError_t last_error = cudaSuccess;
std::size_t shared_asked_for = kSharedWithoutAsking;

std::size_t shared_memory_of_block() {
  constexpr std::size_t kSmall = 99 << 10;
  return is_played("small-blocks") ? kSmall : kSharedMemory;
}

bool is_possible(const Grid& grid) {
  const dim3 &b = grid.blocks, &t = grid.threads;
  constexpr unsigned kMostAcross = 65535;
  return b.x >= 1 && b.x <= 0x7fffffff && b.y >= 1 && b.y <= kMostAcross && b.z >= 1 &&
         b.z <= kMostAcross && t.x >= 1 && t.y >= 1 && t.z >= 1 && t.z <= 64 &&
         std::size_t{t.x} * t.y * t.z <= 1024 && grid.shared_bytes <= shared_asked_for;
}

// Null for an event that was never recorded.
cudaError_t can_be_awaited(const std::shared_ptr<Completion>& completion) {
  return completion != nullptr && completion->recorded ? cudaErrorCapturedEvent : cudaSuccess;
}

}  // namespace

namespace {
Counts counted;
}  // namespace

Counts counts() {
  const auto lock = at_work();
  return counted;
}
void count(std::int64_t Counts::*what) { ++(counted.*what); }

cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void start(const Launch& launch, std::function<void()> thread) {
  const auto lock = at_work();
  if (!is_possible(launch.grid)) {
    noted(cudaErrorInvalidConfiguration);
    return;
  }
  count(&Counts::kernels);
  if (!works()) return;
  enqueue(launch.stream, [grid = launch.grid, thread = std::move(thread)] {
    run_grid(grid, thread);
    return true;
  });
}

}  // namespace tpsim::emulated

using namespace tpsim::emulated;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = is_played("old-driver") ? 0 : kGpus;
  return is_played("old-driver") ? noted(cudaErrorInsufficientDriver) : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return noted(device >= 0 && device < kGpus ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* gpu, int) {
  *gpu = {};
  std::snprintf(gpu->name, sizeof gpu->name, "emulated GPU");
  gpu->major = compute_capability() / 10;
  gpu->minor = compute_capability() % 10;
  gpu->multiProcessorCount = is_played("one-multiprocessor") ? 1 : kMultiprocessors;
  gpu->sharedMemPerBlockOptin = shared_memory_of_block();
  gpu->totalGlobalMem = total_memory();
  gpu->l2CacheSize = kCache;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  constexpr int kOldDriver = 12040;
  *version = is_played("old-driver") ? kOldDriver : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return is_played("other-architecture") ? noted(cudaErrorNoKernelImageForDevice) : cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* bus, int bytes, int) {
  std::snprintf(bus, static_cast<std::size_t>(bytes), "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  const auto lock = at_work();
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    return noted(cudaErrorInvalidValue);
  }
  if (value < 0 || static_cast<std::size_t>(value) > shared_memory_of_block()) {
    return noted(cudaErrorInvalidValue);
  }
  shared_asked_for = std::max(shared_asked_for, static_cast<std::size_t>(value));
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoKernelImageForDevice: return "cudaErrorNoKernelImageForDevice";
    default: return "another error of CUDA";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto lock = at_work();
  *stream = new_stream();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto lock = at_work();
  delete_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const auto lock = at_work();
  if (is_recorded(stream)) return noted(cudaErrorStreamCaptureUnsupported);
  count(&Counts::host_waits);
  finish(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto lock = at_work();
  const std::shared_ptr<Completion> awaited = event_of(event).last;
  if (awaited != nullptr) enqueue(stream, [awaited] { return awaited->passed; });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const auto lock = at_work();
  delete &event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto lock = at_work();
  const auto completion = std::make_shared<Completion>();
  completion->recorded = is_recorded(stream);
  event_of(event).last = completion;
  enqueue(stream, [completion] {
    completion->passed = true;
    completion->at_s = now_s();
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const auto lock = at_work();
  count(&Counts::host_waits);
  const std::shared_ptr<Completion> awaited = event_of(event).last;
  if (const cudaError_t error = can_be_awaited(awaited); error != cudaSuccess) return noted(error);
  if (awaited != nullptr) work_until(nullptr, [&] { return awaited->passed; });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto lock = at_work();
  work_a_little();
  const std::shared_ptr<Completion> awaited = event_of(event).last;
  if (const cudaError_t error = can_be_awaited(awaited); error != cudaSuccess) return noted(error);
  return awaited == nullptr || awaited->passed ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto lock = at_work();
  const auto &first = event_of(start).last, &second = event_of(end).last;
  if (first == nullptr || second == nullptr) return noted(cudaErrorInvalidResourceHandle);
  if (!first->passed || !second->passed) return noted(cudaErrorNotReady);
  *milliseconds = static_cast<float>((second->at_s - first->at_s) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const auto lock = at_work();
  begin_recording(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const auto lock = at_work();
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{end_recording(stream)});
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable =
      reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<const Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const auto lock = at_work();
  for (const Work& work : reinterpret_cast<const Graph*>(executable)->work) enqueue(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<Graph*>(executable);
  return cudaSuccess;
}

}  // extern "C"
