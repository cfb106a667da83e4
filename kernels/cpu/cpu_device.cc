// This file is compiled for any x86-64, so that older processors can print the error message.
#include "kernels/cpu/cpu_device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/narrow_floats.h"

namespace tpsim {

void* HeapSegments::acquire_segment(std::int64_t bytes) {
  return std::aligned_alloc(kBlockAlignment, static_cast<std::size_t>(bytes));
}

void HeapSegments::release_segment(void* data, std::int64_t) { std::free(data); }

Result<std::unique_ptr<CpuDevice>> CpuDevice::create() {
#ifdef __x86_64__
  // Every processor with AVX2 and FMA supports x86-64-v3, which not all compilers can test for.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Error{ErrorKind::kMissing, "the CPU device needs a processor with AVX2 and FMA",
                 "--device cpu", "use --device cuda, or a machine with a newer processor"};
  }
#endif
  use_one_blas_thread();
  return std::unique_ptr<CpuDevice>(new CpuDevice);
}

void CpuDevice::upload(std::span<const std::byte> from, const Tensor& to) {
  TPSIM_CHECK(static_cast<std::int64_t>(from.size()) == to.bytes(), "upload fills the tensor");
  std::memcpy(to.raw(), from.data(), from.size());
}

void CpuDevice::download(const Tensor& from, std::span<std::byte> to) {
  TPSIM_CHECK(static_cast<std::int64_t>(to.size()) == from.bytes(), "download takes the tensor");
  std::memcpy(to.data(), from.raw(), to.size());
}

std::string CpuDevice::refusal_reason(Precision recipe) const {
  return is_emulated(recipe) ? "" : "tpsim can predict this recipe, but cannot run it";
}

void CpuDevice::execute(const Op& op) {
  std::visit([&](const auto& any) { compute(any, state_); }, op);
  state_.scratch.clear();
}

void* CpuDevice::acquire(std::int64_t bytes) {
  void* data = memory_.acquire(bytes);
  if (data == nullptr) {
    throw OutOfDeviceMemory(
        fmt::format("the system has no memory left for a tensor of {} bytes; {} bytes are in use",
                    bytes, allocated_bytes()));
  }
  return data;
}

}  // namespace tpsim
