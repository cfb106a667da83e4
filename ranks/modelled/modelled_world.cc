#include "ranks/modelled/modelled_world.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "core/base/half_floats.h"
#include "kernels/normal_stream.h"

namespace tpsim {
namespace {

constexpr Label kModelled{ModelPart::kMeasurement, "modelled"};

using Clock = std::chrono::steady_clock;

// A sleeping thread may wake up this much too late, so it sleeps less and then polls the clock.
constexpr std::chrono::microseconds kSleepError(200);

void wait_until(Clock::time_point end) {
  if (end - Clock::now() > 2 * kSleepError) std::this_thread::sleep_until(end - kSleepError);
  while (Clock::now() < end) {
  }
}

// Standard deviation of received values, similar to activations after a norm. Long sums stay finite
// in fp16.
constexpr double kDeviation = 0.1;

double drawn(DType dtype, std::size_t index, std::int64_t integers_below) {
  const std::uint64_t key = stream_key(1, 0);
  const bool whole = dtype == DType::kInt32 || dtype == DType::kUInt8;
  if (!whole) return kDeviation * normal_at(key, index);
  return std::floor(uniform_at(key, index) * static_cast<double>(integers_below));
}

// A communicator whose collectives wait for the predicted time.
class ModelledCommunicator final : public Communicator {
 public:
  ModelledCommunicator(Device& device, GroupMember member, CollectiveSeconds seconds,
                       std::int64_t integers_below)
      : Communicator(device, member.group, member.rank, member.size),
        seconds_(std::move(seconds)),
        integers_below_(integers_below) {}

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp) override {
    timed(CollectiveKind::kAllReduce, x.bytes(), [] {});
  }

  void do_all_gather(const Tensor& part, const Tensor& all) override {
    timed(CollectiveKind::kAllGather, all.bytes(), [&] {
      for (int r = 0; r < size(); ++r) {
        const Tensor to = all.slice(r * part.elements(), part.elements());
        if (to.raw() != part.raw()) device().run(Copy{part, to, kModelled});
      }
    });
  }

  void do_reduce_scatter(const Tensor& all, const Tensor& part) override {
    timed(CollectiveKind::kReduceScatter, all.bytes(), [&] {
      const Tensor mine = all.slice(rank() * part.elements(), part.elements());
      if (mine.raw() != part.raw()) device().run(Copy{mine, part, kModelled});
    });
  }

  void do_all_to_all(const Tensor& from, const Tensor& to) override {
    timed(CollectiveKind::kAllToAll, to.bytes(), [&] { device().run(Copy{from, to, kModelled}); });
  }

  void do_broadcast(const Tensor& x, int root) override {
    timed(CollectiveKind::kBroadcast, x.bytes(), [&] {
      if (rank() != root) fill(x);
    });
  }

  void do_send(const Tensor& x, int) override {
    timed(CollectiveKind::kSend, x.bytes(), [] {});
  }

  void do_receive(const Tensor& x, int) override {
    timed(CollectiveKind::kReceive, x.bytes(), [&] { fill(x); });
  }

 private:
  // Runs `work` and waits for the predicted time. The collective starts when the device has
  // completed the work issued before.
  template <class Work>
  void timed(CollectiveKind kind, std::int64_t bytes, Work work) {
    const std::chrono::duration<double> wait(seconds_({kind, group(), size(), bytes, kModelled}));
    if (device().delay(wait.count())) return work();  // asynchronous, as with NCCL
    device().synchronize();
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    work();
    device().synchronize();
    wait_until(end);
  }

  // Fills x on the device, because an upload would take longer than the modeled transfer. Draws at
  // most kDrawn numbers and repeats them.
  void fill_on_device(const Tensor& x) {
    constexpr std::int64_t kDrawn = 1 << 20;
    const std::int64_t all = x.elements();
    std::int64_t filled = std::min(all, kDrawn);
    const Tensor flat = x.reshaped({all});
    device().run(InitNormal{.x = flat.slice(0, filled),
                            .seed = 1,
                            .global_cols = filled,
                            .deviation = static_cast<float>(kDeviation),
                            .label = kModelled});
    while (filled < all) {
      const std::int64_t count = std::min(filled, all - filled);
      device().run(Copy{flat.slice(0, count), flat.slice(filled, count), kModelled});
      filled += count;
    }
  }

  // Fills x with pseudo-random values. Caches them, because drawing takes longer than most
  // transfers.
  void fill(const Tensor& x) {
    const bool whole = x.dtype() == DType::kInt32 || x.dtype() == DType::kUInt8;
    if (!whole && device().delay(0)) return fill_on_device(x);
    const auto width = static_cast<std::size_t>(size_of(x.dtype()));
    if (dtype_ != x.dtype()) contents_.clear();
    dtype_ = x.dtype();
    const std::size_t known = contents_.size() / width;
    const auto needed = static_cast<std::size_t>(x.elements());
    if (known < needed) {
      std::vector<double> numbers(needed - known);
      for (std::size_t i = known; i < needed; ++i) {
        numbers[i - known] = drawn(dtype_, i, integers_below_);
      }
      contents_.resize(needed * width);
      encode(numbers, dtype_, contents_.data() + known * width);
    }
    device().upload(std::span(contents_).first(needed * width), x);
  }

  CollectiveSeconds seconds_;
  std::int64_t integers_below_;
  std::vector<std::byte> contents_;  // drawn numbers of one dtype, for the longest received tensor
  DType dtype_ = DType::kFloat32;    // of contents_
};

}  // namespace

ModelledWorld::ModelledWorld(int rank, int size, CollectiveSeconds seconds,
                             std::int64_t integers_below)
    : World(rank, size), seconds_(std::move(seconds)), integers_below_(integers_below) {
  TPSIM_CHECK(rank >= 0 && rank < size, "a rank of the world");
}

std::unique_ptr<Communicator> ModelledWorld::communicator(
    Device& device, GroupKind group, const std::vector<std::int64_t>& members) {
  return std::make_unique<ModelledCommunicator>(device, member_of(*this, group, members), seconds_,
                                                integers_below_);
}

}  // namespace tpsim
