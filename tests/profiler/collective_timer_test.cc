// Times of collectives on asynchronous devices. Simulated clocks give known host times and delays
// of other ranks.
#include "profiler/collective_timer.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "ranks/meta/meta_communicator.h"
#include "tests/kernels/clock_device.h"

namespace tpsim {
namespace {

constexpr int kRanks = 2;
constexpr double kHostCall = 100e-6;  // per NCCL call
constexpr double kLate = 80e-6;       // delay of rank 1 after every barrier
constexpr double kCollective = 20e-6;

// A barrier that returns the maximum.
class Meeting {
 public:
  double greatest(int rank, double mine) {
    values_[static_cast<std::size_t>(rank)] = mine;
    barrier_.arrive_and_wait();
    const double result = std::max(values_[0], values_[1]);
    barrier_.arrive_and_wait();
    return result;
  }

 private:
  std::array<double, kRanks> values_{};
  std::barrier<> barrier_{kRanks};
};

// Queued work: the host runs ahead. `host` and `work` are the current times of host and device.
class QueueDevice final : public Device {
 public:
  explicit QueueDevice(int rank) : rank_(rank) {}
  double host = 0, work = 0;

  void upload(std::span<const std::byte> from, const Tensor& to) override {
    std::memcpy(to.raw(), from.data(), from.size());
  }
  void download(const Tensor& from, std::span<std::byte> to) override {
    synchronize();
    std::memcpy(to.data(), from.raw(), to.size());
  }
  void synchronize() override { host = std::max(host, work) + rank_ * kLate; }
  DeviceMark mark() override {
    queue(0, 0);
    return {static_cast<std::int64_t>(work * 1e9)};
  }
  double seconds_between(DeviceMark earlier, DeviceMark later) override {
    host = std::max(host, 1e-9 * static_cast<double>(later.value));
    return 1e-9 * static_cast<double>(later.value - earlier.value);
  }
  bool delay(double seconds) override { return queue(0, seconds), true; }
  // Issuing takes `issuing` seconds of the host, running takes `seconds` of the device.
  void queue(double issuing, double seconds) {
    host += issuing;
    work = std::max(host, work) + seconds;
  }

 protected:
  void execute(const Op&) override { queue(5e-6, 2e-6); }
  void* acquire(std::int64_t bytes) override {
    return std::calloc(static_cast<std::size_t>(bytes), 1);
  }
  void give_back(void* data, std::int64_t) override { std::free(data); }

 private:
  int rank_;
};

class QueueCommunicator final : public MetaCommunicator {
 public:
  QueueCommunicator(QueueDevice& device, GroupMember member, Meeting& meeting)
      : MetaCommunicator(device, member.group, member.rank, member.size),
        queue_(device),
        meeting_(meeting) {}

 protected:
  // Also used for votes, none of which is negative.
  void do_all_reduce(const Tensor& x, ReduceOp) override {
    float value = 0;
    std::memcpy(&value, x.raw(), sizeof value);
    value = static_cast<float>(meeting_.greatest(rank(), static_cast<double>(value)));
    std::memcpy(x.raw(), &value, sizeof value);
    queue_.queue(kHostCall, 0);
    queue_.work = meeting_.greatest(rank(), queue_.work) + kCollective;
  }

 private:
  QueueDevice& queue_;
  Meeting& meeting_;
};

class QueueWorld final : public World {
 public:
  QueueWorld(int rank, Meeting& meeting) : World(rank, kRanks), meeting_(meeting) {}
  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override {
    return std::make_unique<QueueCommunicator>(dynamic_cast<QueueDevice&>(device),
                                               member_of(*this, group, members), meeting_);
  }

 private:
  Meeting& meeting_;
};

}  // namespace

TEST_CASE("a collective's time includes neither host calls nor the delay of other ranks") {
  Meeting meeting;
  std::array<Samples, kRanks> samples;
  const auto rank = [&](int number) {
    QueueDevice device(number);
    QueueWorld world(number, meeting);
    RankBarrier barrier(world, device);
    std::vector<CollectiveNeed> needs;
    for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 16,
                                     std::int64_t{1} << 22, std::int64_t{20} << 20}) {
      needs.push_back({CollectiveKind::kAllReduce, kRanks, bytes});
    }
    time_collectives(world, device, barrier, needs, {.most_samples = 20},
                     samples[static_cast<std::size_t>(number)]);
  };
  {
    const std::jthread second(rank, 1);
    rank(0);
  }
  for (const Samples& of_rank : samples) {
    REQUIRE(of_rank.collectives().size() == 4);
    for (const CollectiveSample& one : of_rank.collectives()) {
      INFO(one.bytes.value());
      CHECK(one.median.value() == Approx(kCollective).epsilon(1e-3));
    }
  }
}

}  // namespace tpsim
