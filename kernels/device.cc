#include "kernels/device.h"

#include <algorithm>

namespace tpsim {

Tensor Device::allocate(Shape shape, DType dtype, MemoryCategory category, const char* label) {
  const std::int64_t bytes = shape.elements() * size_of(dtype);
  void* data = acquire(bytes);
  const std::uint32_t id = next_id_++;
  allocated_ += bytes;
  peak_ = std::max(peak_, allocated_);
  if (recorder_ != nullptr) recorder_->allocated(id, {bytes, category, label});
  return Tensor(std::make_shared<Storage>(*this, data, bytes, id), 0, shape, dtype);
}

void Device::release(void* data, std::int64_t bytes, std::uint32_t id) {
  allocated_ -= bytes;
  if (recorder_ != nullptr) recorder_->freed(id);
  give_back(data, bytes);
}

float download_scalar(Device& device, const Tensor& scalar) {
  float value = 0.0F;
  device.download(scalar, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace tpsim
