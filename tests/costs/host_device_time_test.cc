#include "costs/host_device_time.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace tpsim {
namespace {

std::vector<std::pair<double, double>> random_ops(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> time(0.0, 1.0);
  std::vector<std::pair<double, double>> ops;
  for (int i = 0; i < count; ++i) ops.emplace_back(time(random), time(random));
  return ops;
}

HostDeviceTime composed(const std::vector<std::pair<double, double>>& ops) {
  HostDeviceTime cost;
  for (const auto& [issue, run] : ops) cost = then(cost, op_cost(Seconds(issue), Seconds(run)));
  return cost;
}

}  // namespace

TEST_CASE("composed queues equal a walk over both clocks") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const auto ops = random_ops(seed, 40);
    double host = 0, device = 0;
    for (const auto& [issue, run] : ops) {
      host += issue;
      device = std::max(device, host) + run;
    }
    CHECK(composed(ops).alone().value() == Approx(std::max(host, device)));
  }
}

TEST_CASE("a power equals repetition") {
  const HostDeviceTime once = composed(random_ops(7, 5));
  HostDeviceTime chain;
  for (int i = 0; i < 13; ++i) chain = then(chain, once);
  const HostDeviceTime power = repeat(once, 13);
  CHECK(power.host.value() == Approx(chain.host.value()));
  CHECK(power.device.value() == Approx(chain.device.value()));
  CHECK(power.path.value() == Approx(chain.path.value()));
}

TEST_CASE("a host that waits has the device's time") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const auto ops = random_ops(seed, 20);
    double host = 0, device = 0;
    HostDeviceTime cost;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto [issue, run] = ops[i];
      host += issue;
      device = std::max(device, host) + run;
      cost = then(cost, op_cost(Seconds(issue), Seconds(run)));
      if (i % 5 != 4) continue;
      host = std::max(host, device) + 0.1;
      cost = then(cost, synchronization(Seconds(0.1)));
    }
    CHECK(cost.alone().value() == Approx(std::max(host, device)));
    // Three repetitions, by squaring.
    CHECK(repeat(cost, 3).alone().value() == Approx(then(then(cost, cost), cost).alone().value()));
  }
}

TEST_CASE("a period is the time of one more repetition") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const bool waits = seed % 2 == 1;
    HostDeviceTime once = composed(random_ops(seed, 8));
    if (waits) once = then(then(once, synchronization(Seconds(0.1))), composed(random_ops(99, 3)));
    const Seconds many = repeat(once, 4000).alone() - repeat(once, 2000).alone();
    CHECK(period(once).value() == Approx(many.value() / 2000).epsilon(1e-3));
  }
}

TEST_CASE("the longer queue decides") {
  const HostDeviceTime host_bound = repeat(op_cost(Seconds(2.0), Seconds(1.0)), 10);
  CHECK(host_bound.alone().value() == Approx(21.0));
  const HostDeviceTime device_bound = repeat(op_cost(Seconds(1.0), Seconds(2.0)), 10);
  CHECK(device_bound.alone().value() == Approx(21.0));
}

}  // namespace tpsim
