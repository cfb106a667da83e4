// Failures of a run: the closed form compared with replays, the best checkpoint interval, and spare
// nodes.
#include "campaigns/failures.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace tpsim {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
constexpr SpareNodes kEndlessSpares{1 << 30, Seconds(kDay)};

FailureModel model_of(double work_days, double interval_h, double write_s, double mtbf_h) {
  FailureModel model;
  model.work = Seconds(work_days * kDay);
  model.interval = Seconds(interval_h * kHour);
  model.write = Seconds(write_s);
  model.restart = Seconds(1800);
  model.mtbf = Seconds(mtbf_h * kHour);
  return model;
}

}  // namespace

TEST_CASE("replayed campaigns agree with the closed form within their own interval") {
  const FailureModel model = GENERATE(values<FailureModel>({
      model_of(107, 3, 42, 112),   // BLOOM
      model_of(54, 0.5, 30, 3.1),  // thousands of nodes
      model_of(10, 1, 600, 2),     // failures as often as checkpoints
      model_of(0.1, 24, 60, 1),    // one segment
      model_of(2, 0.7, 60, 10),    // a shorter last segment
  }));
  const Replays replays = replay_campaigns(model, kEndlessSpares, 20'000, 7);
  INFO(expected_wall(model).value() << " s, replayed " << replays.mean.value() << " s");
  // Four standard errors: one case in 16,000 would fail by chance, and the seed is fixed.
  CHECK(std::abs((replays.mean - expected_wall(model)).value()) <
        4 * replays.standard_error.value());
  CHECK(replays.standard_error.value() > 0);
  CHECK(replays.waiting == Seconds());
  CHECK(replays.low <= replays.median);
  CHECK(replays.median <= replays.high);
}

TEST_CASE(
    "the interval of the replays notices a closed form that is off by a percent of the waste") {
  const FailureModel model = model_of(107, 3, 42, 112);
  FailureModel worse = model;
  worse.restart *= 1.1;
  const Replays replays = replay_campaigns(model, kEndlessSpares, 20'000, 7);
  CHECK(std::abs((replays.mean - expected_wall(worse)).value()) >
        4 * replays.standard_error.value());
}

TEST_CASE("one seed gives one answer, another seed another") {
  const FailureModel model = model_of(107, 3, 42, 112);
  const SpareNodes spares{2, Seconds(72 * kHour)};
  const Replays first = replay_campaigns(model, spares, 100, 1);
  CHECK(replay_campaigns(model, spares, 100, 1).mean == first.mean);
  CHECK(replay_campaigns(model, spares, 100, 2).mean != first.mean);
}

TEST_CASE("fewer spare nodes mean more waiting, and none means waiting for every repair") {
  const FailureModel model = model_of(50, 3, 42, 48);
  Seconds before(1e18);
  for (const std::int64_t count : {0, 1, 2, 4, 16}) {
    const Replays replays = replay_campaigns(model, {count, Seconds(kDay)}, 500, 3);
    CHECK(replays.waiting < before);
    before = replays.waiting;
    if (count == 0) CHECK(replays.waiting.value() == Approx(replays.failures * kDay));
    if (count == 16) CHECK(replays.waiting == Seconds());
  }
}

TEST_CASE("enough spare nodes are the quantile of a Poisson number") {
  CHECK(spare_nodes_for(Seconds(), Seconds(1), 0.01) == 0);
  // Poisson(1): P(N <= 3) = 0.9810, P(N <= 4) = 0.9963.
  CHECK(spare_nodes_for(Seconds(10), Seconds(10), 0.01) == 4);
  CHECK(spare_nodes_for(Seconds(10), Seconds(10), 0.02) == 3);
  // Poisson(1000) is nearly normal: 1000 + 2.326 sqrt(1000) = 1073.6.
  CHECK(std::abs(spare_nodes_for(Seconds(1e4), Seconds(10), 0.01) - 1074) <= 2);
}

TEST_CASE("Daly's interval is the best one, and Young's where checkpoints are short") {
  for (const double write : {1.0, 42.0, 600.0}) {
    const Seconds best = daly_interval(Seconds(write), Seconds(112 * kHour));
    const auto wall = [&](double factor) {
      FailureModel model = model_of(1000, 1, write, 112);
      model.interval = factor * best;
      return expected_wall(model);
    };
    CHECK(wall(1.0) < wall(0.8));
    CHECK(wall(1.0) < wall(1.25));
  }
  const Seconds month(30 * kDay);
  CHECK(daly_interval(Seconds(1), month) / young_interval(Seconds(1), month) ==
        Approx(1).epsilon(1e-3));
  CHECK(daly_interval(Seconds(3), Seconds(1)) == Seconds(1));
}

TEST_CASE("no interval beats the best one, and Young's and Daly's agree where they are valid") {
  const Seconds mtbf(112 * kHour);
  for (const double write : {1.0, 42.0, 3600.0, 112 * kHour, 400 * kHour}) {
    const Seconds best = best_interval(Seconds(write), mtbf);
    // Time per second of work in an endless run, which Daly minimizes.
    const auto cost = [&](Seconds interval) {
      return std::expm1((interval + Seconds(write)) / mtbf) / interval.value();
    };
    INFO(write);
    for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
      CHECK(cost(best) < cost(best * factor));
    }
    if (write / mtbf.value() < 0.01) {
      CHECK(daly_interval(Seconds(write), mtbf) / best == Approx(1).epsilon(1e-4));
      // Daly's first-order correction adds one third of sqrt(C / 2M). Subtracting the checkpoint's
      // own time removes three thirds.
      const double correction = 2.0 / 3 * std::sqrt(write / (2 * mtbf.value()));
      CHECK(young_interval(Seconds(write), mtbf) / best == Approx(1 + correction).epsilon(3e-3));
    }
  }
}

TEST_CASE("without failures a run takes its work and its checkpoints") {
  FailureModel model = model_of(10, 3, 60, 1e12);
  CHECK(checkpoint_count(model) == 80);
  CHECK(expected_wall(model).value() == Approx(10 * kDay + 80 * 60).epsilon(1e-6));
  model.work = Seconds(10 * kDay + 1);
  CHECK(checkpoint_count(model) == 81);
}

}  // namespace tpsim
