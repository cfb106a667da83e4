// Compiled for any x86-64, so that an older processor gets as far as the message.
#include "kernels/cpu/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/narrow_floats.h"

namespace tpsim {
namespace {

constexpr std::int64_t kAlignment = 256;

// Rounds up to an eighth of the size's power of two, so that near sizes share blocks.
std::int64_t rounded(std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
  const auto step = std::max(kAlignment, static_cast<std::int64_t>(std::bit_floor(size) / 8));
  return (static_cast<std::int64_t>(size) + step - 1) / step * step;
}

}  // namespace

MemoryCache::~MemoryCache() { release_kept(); }

void* MemoryCache::acquire(std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  void* data = nullptr;
  if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
    data = found->second.back();
    found->second.pop_back();
    kept_bytes_ -= size;
  } else {
    data = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size));
    if (data == nullptr) {
      release_kept();
      data = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size));
    }
    if (data == nullptr) return nullptr;
  }
  used_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return data;
}

void MemoryCache::give_back(void* data, std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  used_bytes_ -= size;
  kept_[size].push_back(data);
  kept_bytes_ += size;
  if (used_bytes_ + kept_bytes_ > 2 * peak_bytes_) release_kept();
}

void MemoryCache::release_kept() {
  for (auto& [size, blocks] : kept_) {
    for (void* data : blocks) std::free(data);
  }
  kept_.clear();
  kept_bytes_ = 0;
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::create() {
#ifdef __x86_64__
  // Every processor with these two has the rest of x86-64-v3, which compilers cannot all name.
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

std::string CpuDevice::reason_against(Precision recipe) const {
  return is_emulated(recipe) ? "" : "it is predicted only";
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
