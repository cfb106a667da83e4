#include "kernels/cuda/runtime/kernel_trace.h"

#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {
namespace {

struct Cupti {
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) callbacks = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next = nullptr;
  decltype(&::cuptiActivityFlushAll) flush = nullptr;
};

// Global state, since CUPTI's callbacks take no user argument.
struct Recorded {
  std::mutex mutex;
  Cupti cupti;
  std::vector<KernelSpan> kernels;
};
Recorded& recorded() {
  static Recorded one;
  return one;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::size_t kBytes = 1 << 20, kAlignment = 8;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
  *size = *buffer != nullptr ? kBytes : 0;
  *most_records = 0;  // unlimited
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t filled) {
  Recorded& all = recorded();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (filled > 0 && all.cupti.next(buffer, filled, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    // Newer CUPTI versions only append fields to this record.
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel4*>(record);
    all.kernels.push_back({kernel->start, kernel->end});
  }
  std::free(buffer);
}

Error refused(const char* what, CUptiResult result) {
  return {
      ErrorKind::kMissing,
      fmt::format("CUPTI cannot record kernels: {} returned {}", what, static_cast<int>(result)),
      "", "end other profilers: only one can use CUPTI at a time"};
}

Status opened(Cupti& cupti) {
  const std::string major = std::to_string(CUPTI_API_VERSION / 10000);
  TPSIM_TRY(const SharedLibrary library,
            SharedLibrary::open("CUPTI", {"libcupti.so." + major, "libcupti.so"}));
  TPSIM_TRY_STATUS(library.find("cuptiActivityEnable", cupti.enable));
  TPSIM_TRY_STATUS(library.find("cuptiActivityDisable", cupti.disable));
  TPSIM_TRY_STATUS(library.find("cuptiActivityRegisterCallbacks", cupti.callbacks));
  TPSIM_TRY_STATUS(library.find("cuptiActivityGetNextRecord", cupti.next));
  TPSIM_TRY_STATUS(library.find("cuptiActivityFlushAll", cupti.flush));
  const CUptiResult result = cupti.callbacks(give_buffer, take_buffer);
  if (result != CUPTI_SUCCESS) return refused("cuptiActivityRegisterCallbacks", result);
  return Ok{};
}

const Status& cupti_is_here() {
  static const Status status = opened(recorded().cupti);
  return status;
}

}  // namespace

Result<std::vector<KernelSpan>> traced_kernels(CudaDevice& device,
                                               const std::function<void()>& work) {
  if (!cupti_is_here().ok()) return cupti_is_here().error();
  Recorded& all = recorded();
  device.synchronize();
  const CUptiResult result = all.cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result != CUPTI_SUCCESS) return refused("cuptiActivityEnable", result);
  all.kernels.clear();
  work();
  device.synchronize();
  constexpr std::uint32_t kAlsoUnfinished = CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
  static_cast<void>(all.cupti.flush(kAlsoUnfinished));
  static_cast<void>(all.cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  const std::lock_guard lock(all.mutex);
  std::vector<KernelSpan> kernels = std::exchange(all.kernels, {});
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelSpan& a, const KernelSpan& b) { return a.begin_ns < b.begin_ns; });
  return kernels;
}

}  // namespace tpsim
