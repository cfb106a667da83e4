#include "profiler/load_meter.h"

#include <time.h>

namespace tpsim {
namespace {

// Minimum CPU time over wall time of an undisturbed thread. System interrupts take the rest.
constexpr double kLeastShare = 0.98;
// Shorter times in seconds are accepted, because the resolution of the clocks dominates.
constexpr double kShortest = 20e-6;

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void ThreadLoadMeter::start() {
  wall_ = seconds_of(CLOCK_MONOTONIC);
  on_core_ = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

bool ThreadLoadMeter::was_alone() {
  const double on_core = seconds_of(CLOCK_THREAD_CPUTIME_ID) - on_core_;
  const double wall = seconds_of(CLOCK_MONOTONIC) - wall_;
  return wall < kShortest || on_core >= kLeastShare * wall;
}

}  // namespace tpsim
