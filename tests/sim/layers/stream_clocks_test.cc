// Laws of programs with several streams.
#include "sim/layers/stream_clocks.h"

#include <catch2/catch.hpp>
#include <random>

namespace tpsim {
namespace {

Seconds ms(double time) { return Seconds(1e-3 * time); }

// A program of kernels, starts and waits.
struct Step {
  enum class Kind { kRun, kStart, kWait } kind{};
  std::uint32_t id = 0;
  Stream stream = Stream::kData;
  Mover mover = Mover::kProcessors;
  Seconds time = {};
};

Seconds time_of(const std::vector<Step>& program, double slowdown) {
  StreamClocks clocks(slowdown);
  Seconds time = {};
  for (const Step& step : program) {
    switch (step.kind) {
      case Step::Kind::kRun: time += step.time + clocks.run(step.time); break;
      case Step::Kind::kStart: clocks.start(step.id, step.stream, step.mover, step.time); break;
      case Step::Kind::kWait: time += clocks.wait(step.id); break;
    }
  }
  return time;
}

// Every call is waited for.
std::vector<Step> random_program(std::mt19937& random) {
  std::vector<Step> program;
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto some = [&] { return ms(1 + below(9)); };
  std::vector<std::uint32_t> started;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const unsigned kind = below(3);
    if (kind == 0) program.push_back({.kind = Step::Kind::kRun, .time = some()});
    if (kind == 1) {
      const auto stream = static_cast<Stream>(1 + below(3));
      const Mover mover = stream == Stream::kTensor ? Mover::kProcessors : Mover::kCopyEngine;
      program.push_back({Step::Kind::kStart, i, stream, mover, some()});
      started.push_back(i);
    }
    if (kind == 2 && !started.empty()) {
      program.push_back(
          {.kind = Step::Kind::kWait, .id = started[below(static_cast<unsigned>(started.size()))]});
    }
  }
  for (const std::uint32_t id : started) program.push_back({.kind = Step::Kind::kWait, .id = id});
  return program;
}

}  // namespace

TEST_CASE("a call is hidden by the kernels until the wait, and slows them") {
  CHECK(time_beside(ms(3), ms(5), Mover::kCopyEngine, 1.2) == Seconds());
  CHECK(time_beside(ms(5), ms(3), Mover::kCopyEngine, 1.2).value() == Approx(2e-3));
  CHECK(time_beside(ms(3), ms(5), Mover::kProcessors, 1.2).value() == Approx(0.6e-3));
  CHECK(time_beside(ms(5), ms(3), Mover::kProcessors, 1.2).value() == Approx(2.6e-3));
  CHECK(time_beside(ms(5), ms(3), Mover::kProcessors, 2).value() == Approx(5e-3));
  CHECK(time_beside(ms(5), Seconds(), Mover::kProcessors, 2).value() == Approx(5e-3));
}

TEST_CASE("a call waits for those before it on its stream, and for no other stream") {
  StreamClocks clocks(1);
  clocks.start(0, Stream::kData, Mover::kProcessors, ms(4));
  clocks.start(1, Stream::kData, Mover::kProcessors, ms(2));
  clocks.start(2, Stream::kTensor, Mover::kProcessors, ms(3));
  CHECK(clocks.wait(2).value() == Approx(3e-3));
  CHECK(clocks.wait(1).value() == Approx(3e-3));
  CHECK(clocks.wait(0) == Seconds());
}

TEST_CASE("longer kernels or calls never shorten a program, which is at least its longest stream") {
  std::mt19937 random(65);
  for (int i = 0; i < 2000; ++i) {
    const double slowdown = 1 + static_cast<double>(i % 5) / 4;
    std::vector<Step> program = random_program(random);
    const Seconds time = time_of(program, slowdown);
    Seconds compute, all;
    for (const Step& step : program) {
      if (step.kind == Step::Kind::kRun) compute += step.time;
      all += step.time;
    }
    CHECK(time >= (1 - 1e-9) * compute);
    CHECK(time <= (1 + 1e-9) * all);
    for (Step& step : program) {
      const Seconds before = step.time;
      step.time += ms(2);
      if (before > Seconds()) CHECK(time_of(program, slowdown) >= (1 - 1e-9) * time);
      step.time = before;
    }
  }
}

}  // namespace tpsim
