// The CPU as a device: one thread, fp32 arithmetic, host memory.
//
// bf16 and fp16 tensors are stored in two bytes, widened when read and rounded to nearest even when
// written, so a plan in bf16 has bf16's rounding but not its speed. One device per rank; a device
// is used by one thread at a time. Ops that are given the same values give the same bits.
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

// The heap of this process.
class HeapSegments final : public SegmentSource {
 public:
  void* acquire_segment(std::int64_t bytes) override;
  void release_segment(void* data, std::int64_t bytes) override;
};

class CpuDevice final : public Device {
 public:
  // kMissing when the processor lacks AVX2 or FMA, which the kernels are compiled for.
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
