// The CPU as a device: one thread, fp32 arithmetic, host memory.
//
// bf16 and fp16 tensors have two bytes per element, which are converted to fp32 when read and
// rounded to nearest even when written. A bf16 plan has the rounding of bf16 but not its speed.
// Each rank has one device, used by one thread at a time. Equal inputs give bit-equal results.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/device.h"
#include "kernels/memory_cache.h"

namespace tpsim {

// Segments from the heap of this process.
class HeapSegments final : public SegmentSource {
 public:
  void* acquire_segment(std::int64_t bytes) override;
  void release_segment(void* data, std::int64_t bytes) override;
};

class CpuDevice final : public Device {
 public:
  // Creates the device. kMissing if the processor lacks AVX2 or FMA, for which the kernels are
  // compiled.
  static Result<std::unique_ptr<CpuDevice>> create();

  void upload(std::span<const std::byte> from, const Tensor& to) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void synchronize() override {}
  std::string refusal_reason(Precision recipe) const override;

  const MemoryCache& memory() const { return memory_; }

 protected:
  void execute(const Op& op) override;
  void* acquire(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) override { memory_.give_back(data, bytes); }

 private:
  CpuDevice() = default;

  CpuState state_;
  HeapSegments heap_;
  MemoryCache memory_{heap_};
};

}  // namespace tpsim
