// The CPU as a device: one thread, fp32 arithmetic, host memory.
//
// bf16 and fp16 tensors are stored in two bytes, widened when read and rounded to nearest even when
// written, so a plan in bf16 has bf16's rounding but not its speed. One device per rank; a device
// is used by one thread at a time. Ops that are given the same values give the same bits.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/result.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/device.h"

namespace tpsim {

// Host memory that is kept when it is given back: a training step asks for the same sizes again and
// again, and fresh pages cost more than most ops do.
class MemoryCache {
 public:
  MemoryCache() = default;
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // At least `bytes`, aligned to 256; null when the system has no more.
  void* acquire(std::int64_t bytes);
  // `bytes` as in acquire(). Used and kept together never exceed twice the peak of the used.
  void give_back(void* data, std::int64_t bytes);

 private:
  void release_kept();

  std::map<std::int64_t, std::vector<void*>> kept_;  // by rounded size
  std::int64_t kept_bytes_ = 0;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

class CpuDevice final : public Device {
 public:
  // kMissing when the processor lacks AVX2 or FMA, which the kernels are compiled for.
  static Result<std::unique_ptr<CpuDevice>> create();

  void upload(std::span<const std::byte> from, const Tensor& to) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void synchronize() override {}
  std::string reason_against(Precision recipe) const override;

 protected:
  void execute(const Op& op) override;
  void* acquire(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) override { memory_.give_back(data, bytes); }

 private:
  CpuDevice() = default;

  CpuState state_;
  MemoryCache memory_;
};

}  // namespace tpsim
