// The reference for all other devices: every op in float64, by loops that follow its definition.
//
// Dtypes are ignored: elements are doubles from upload to download, without rounding. Uninitialized
// memory is zero. Tests and the profiler compare every other device with this one.
#pragma once

#include "kernels/device.h"
#include "kernels/slow/slow_ops.h"

namespace tpsim {

class SlowDevice final : public Device {
 public:
  void upload(std::span<const std::byte> from, const Tensor& to) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void synchronize() override {}

  // Returns a tensor's elements, without rounding. The caller may write them.
  std::span<double> values(const Tensor& tensor) const {
    return {memory_.at(tensor), static_cast<std::size_t>(tensor.elements())};
  }

 protected:
  void execute(const Op& op) override;
  void* acquire(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) override;

 private:
  SlowMemory memory_;
};

}  // namespace tpsim
