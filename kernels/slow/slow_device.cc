#include "kernels/slow/slow_device.h"

#include "core/base/half_floats.h"

namespace tpsim {

double* SlowMemory::at(const Tensor& tensor) const {
  if (!tensor.defined()) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.raw());
  const auto next = blocks_.upper_bound(address);
  TPSIM_CHECK(next != blocks_.begin(), "a tensor of this device");
  const auto& [base, block] = *std::prev(next);
  const auto first = static_cast<std::int64_t>(address - base) / size_of(tensor.dtype());
  return block.get() + first;
}

void* SlowMemory::acquire(std::int64_t bytes) {
  // Allocates one double per byte, which suffices for one-byte dtypes. The address of the block is
  // the tensor's device address, so that addresses of views are inside the block.
  const auto count = static_cast<std::size_t>(bytes + 1);
  auto block = std::make_unique<double[]>(count);
  void* data = block.get();
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(data), std::move(block));
  return data;
}

void SlowMemory::give_back(void* data) { blocks_.erase(reinterpret_cast<std::uintptr_t>(data)); }

void SlowDevice::upload(std::span<const std::byte> from, const Tensor& to) {
  TPSIM_CHECK(static_cast<std::int64_t>(from.size()) == to.bytes(), "upload fills the tensor");
  decode(from.data(), to.dtype(), values(to));
}

void SlowDevice::download(const Tensor& from, std::span<std::byte> to) {
  TPSIM_CHECK(static_cast<std::int64_t>(to.size()) == from.bytes(), "download takes the tensor");
  encode(values(from), from.dtype(), to.data());
}

void SlowDevice::execute(const Op& op) {
  std::visit([&](const auto& any) { compute_slowly(any, memory_); }, op);
}

void* SlowDevice::acquire(std::int64_t bytes) { return memory_.acquire(bytes); }
void SlowDevice::give_back(void* data, std::int64_t) { memory_.give_back(data); }

}  // namespace tpsim
