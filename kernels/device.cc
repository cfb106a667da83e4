#include "kernels/device.h"

#include <algorithm>
#include <chrono>

namespace tpsim {

Storage::~Storage() { device_.release(data_, bytes_, id_); }

Tensor Device::allocate(Shape shape, DType dtype, MemoryCategory category, const char* label,
                        AllocationRole role) {
  const std::int64_t bytes = shape.elements() * size_of(dtype);
  void* data = acquire(bytes);
  const std::uint32_t id = next_id_++;
  allocated_ += bytes;
  peak_ = std::max(peak_, allocated_);
  if (recorder_ != nullptr) recorder_->allocated(id, {bytes, category, label, role});
  return Tensor(std::make_shared<Storage>(*this, data, bytes, id), 0, shape, dtype);
}

void Device::run(const Op& op) {
  for (OverlappedWork* work : beside_) work->progress();
  const OpRecord record = describe(op);
  if (recorder_ != nullptr) recorder_->op_started(record);
  execute(op);
  if (recorder_ != nullptr) recorder_->op_finished(record);
}

void Device::note(const OpRecord& record) {
  TPSIM_CHECK(!computes(), std::string("no device computes ") + record.label.text);
  if (recorder_ == nullptr) return;
  recorder_->op_started(record);
  recorder_->op_finished(record);
}

Status Device::start_recording() {
  return bad_input("CUDA graphs need a GPU", "--cuda-graphs", "run with --device cuda");
}

void Device::release(void* data, std::int64_t bytes, std::uint32_t id) {
  allocated_ -= bytes;
  if (recorder_ != nullptr) recorder_->freed(id);
  give_back(data, bytes);
}

DeviceMark Device::mark() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

double Device::seconds_between(DeviceMark earlier, DeviceMark later) {
  return static_cast<double>(later.value - earlier.value) * 1e-9;
}

float download_scalar(Device& device, const Tensor& scalar) {
  float value = 0.0F;
  device.download(scalar, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace tpsim
