// A device whose clock advances only with its ops, so that times in tests are exact.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <vector>

#include "kernels/checks/op_cases.h"
#include "kernels/device.h"

namespace tpsim::test {

class ClockDevice final : public Device {
 public:
  // Duration of an op in nanoseconds; ops compute nothing.
  std::function<std::int64_t(const Op&)> duration = [](const Op&) { return std::int64_t{1000}; };

  void upload(std::span<const std::byte> from, const Tensor& to) override {
    std::memcpy(to.raw(), from.data(), from.size());
  }
  void download(const Tensor& from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from.raw(), to.size());
  }
  void synchronize() override {}
  DeviceMark mark() override { return {now_}; }
  bool delay(double seconds) override { return delayed_ += seconds, false; }
  double delayed() const { return delayed_; }

  // Addresses of the results of all ops so far.
  const std::set<const void*>& written() const { return written_; }
  std::int64_t ops() const { return ops_; }

 protected:
  void execute(const Op& op) override {
    now_ += duration(op);
    ++ops_;
    for (const OpResult& result : results_of(op)) written_.insert(result.tensor.raw());
  }
  void* acquire(std::int64_t bytes) override {
    return std::calloc(static_cast<std::size_t>(bytes) + 1, 1);
  }
  void give_back(void* data, std::int64_t) override { std::free(data); }

 private:
  std::int64_t now_ = 0;
  double delayed_ = 0;
  std::int64_t ops_ = 0;
  std::set<const void*> written_;
};

}  // namespace tpsim::test
