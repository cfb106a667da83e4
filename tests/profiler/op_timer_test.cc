// Times of single ops, on a clock that only ops advance.
#include "profiler/op_timer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "ranks/modelled/modelled_world.h"
#include "tests/kernels/clock_device.h"

namespace tpsim {
namespace {

using test::ClockDevice;

constexpr OpKey kFillKey{OpKind::kFill, DType::kFloat32, 0, {1024}};

// Reports every n-th measurement as disturbed, and notifies the device.
class FakeMeter final : public LoadMeter {
 public:
  explicit FakeMeter(int every) : every_(every) {}
  void start() override { disturbed_ = every_ > 0 && ++stretches_ % every_ == 0; }
  bool was_alone() override { return !disturbed_; }
  bool disturbed() const { return disturbed_; }

 private:
  int every_;
  int stretches_ = 0;
  bool disturbed_ = false;
};

struct Bench {
  ClockDevice device;
  FakeMeter meter;
  ModelledWorld world{0, 1, [](const CollectiveRecord&) { return 0.0; }, 1};
  RankBarrier barrier{world, device};
  OpTimerSettings settings;

  explicit Bench(int disturbed_every = 0) : meter(disturbed_every) {}
  std::vector<double> times(const OpKey& key) {
    return OpTimer(device, meter, barrier, settings).times(key);
  }
};

}  // namespace

TEST_CASE("an op's time is the device time of one run, with any number of runs per sample") {
  Bench bench;
  for (const std::int64_t nanoseconds : {200, 30'000, 2'000'000}) {
    bench.device.duration = [=](const Op&) { return nanoseconds; };
    const std::vector<double> times = bench.times(kFillKey);
    CHECK(times.size() >= bench.settings.least_samples);
    for (const double seconds : times) {
      CHECK(seconds == Approx(1e-9 * static_cast<double>(nanoseconds)));
    }
  }
}

TEST_CASE("samples that other programs disturbed are discarded") {
  Bench bench(3);
  bench.device.duration = [&](const Op&) {
    return std::int64_t{bench.meter.disturbed() ? 900'000 : 100'000};
  };
  const std::vector<double> times = bench.times(kFillKey);
  REQUIRE(!times.empty());
  CHECK(*std::max_element(times.begin(), times.end()) == Approx(100e-6));
}

TEST_CASE("on a machine that is never idle the timer ends without samples") {
  Bench bench(1);
  CHECK(bench.times(kFillKey).empty());
}

TEST_CASE("operands rotate through the requested number of bytes") {
  Bench bench;
  bench.settings.rotated = Bytes(10 * 4096);
  bench.times(kFillKey);
  CHECK(bench.device.written().size() == 10);
}

TEST_CASE("the device is delayed until the host has issued a sample, outside the measured time") {
  Bench bench;
  const std::vector<double> times = bench.times(kFillKey);
  CHECK(bench.device.delayed() >= 10e-6 * static_cast<double>(bench.device.ops()));
  for (const double seconds : times) CHECK(seconds == Approx(1e-6));
}

TEST_CASE("sustained times are measured after the warm-up, in which at_work is not called") {
  Bench bench;
  // The device slows by a quarter after 1.2 s of work.
  double worked = 0;
  bench.device.duration = [&](const Op&) {
    const std::int64_t nanoseconds = worked < 1.2 ? 1'000'000 : 1'250'000;
    worked += 1e-9 * static_cast<double>(nanoseconds);
    return nanoseconds;
  };
  std::map<bool, int> heard;
  bench.settings.at_work = [&](bool soaked) { ++heard[soaked]; };
  const OpTimerSettings settings = bench.settings;
  OpTimer timer(bench.device, bench.meter, bench.barrier, settings);
  for (const double seconds : timer.times(kFillKey)) CHECK(seconds == Approx(1e-3));
  CHECK(heard[true] == 0);
  const int before = heard[false];
  const std::vector<double> hot = timer.sustained_times(kFillKey);
  CHECK(hot.size() == settings.least_samples);
  for (const double seconds : hot) CHECK(seconds == Approx(1.25e-3));
  CHECK(heard[true] > 0);
  CHECK(heard[false] - before < 100);  // samples of the warm-up: 150
}

TEST_CASE("delays at sustained clocks are short, so that the device stays busy") {
  Bench bench;
  bench.device.duration = [](const Op&) { return std::int64_t{20'000}; };
  OpTimer timer(bench.device, bench.meter, bench.barrier, bench.settings);
  timer.times(kFillKey);
  const double delayed = bench.device.delayed();
  const auto ops = bench.device.ops();
  timer.sustained_times(kFillKey);
  const double worked = 20e-6 * static_cast<double>(bench.device.ops() - ops);
  CHECK(bench.device.delayed() - delayed < 0.05 * worked);
}

TEST_CASE("sampling ends early for steady times, and at the budget for scattered ones") {
  Bench steady;
  steady.device.duration = [](const Op&) { return std::int64_t{1'000'000}; };
  CHECK(steady.times(kFillKey).size() == 10);  // two rounds of five

  Bench scattered;
  std::int64_t turn = 0;
  scattered.device.duration = [&](const Op&) { return std::int64_t{500'000} * (1 + turn++ % 3); };
  const std::size_t taken = scattered.times(kFillKey).size();
  CHECK(taken > 200);  // 0.3 s of 1 ms on average
  CHECK(taken < 400);
}

}  // namespace tpsim
