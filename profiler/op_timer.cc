#include "profiler/op_timer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/checks/op_cases.h"
#include "profiler/samples.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostSets = 64;
// Number of samples between two checks whether all ranks have enough samples.
constexpr std::size_t kRound = 5;
// Upper bound of the host time to issue an op, in seconds.
constexpr double kHostSeconds = 10e-6;
// Longest delay in sustained timing, in seconds. A longer pause would cool the device. A short
// delay suffices, because the host is ahead of the device once the first ops are issued.
constexpr double kShortHold = 0.3e-3;

// Changes the scale of in-place ops so that repeated runs do not shrink the operand to denormal
// numbers, on which processors are slow. Growth to infinity and NaN does not affect time.
void keep_from_shrinking(Op& op) {
  if (auto* scale = std::get_if<Scale>(&op)) scale->factor = 1.0F;
  if (auto* softmax = std::get_if<SoftmaxBackward>(&op)) {
    softmax->scale = static_cast<float>(softmax->probs.cols());
  }
}

}  // namespace

// Creates operand sets and runs the op once on each. Creates fewer sets for a slow op, which is
// compute-bound and does not need cold operands.
OpTimer::WarmSets OpTimer::warm_sets(const OpKey& key) {
  std::vector<Op> sets;
  double fastest = std::numeric_limits<double>::infinity();
  double bytes = 0;
  double spent = 0;
  const DeviceMark begin = device_.mark();
  const auto passed = [&] { return device_.seconds_between(begin, device_.mark()); };
  while (sets.empty() ||
         (sets.size() < kMostSets && bytes < settings_.rotated.value() &&
          spent < settings_.budget.value() && passed() < settings_.making.value())) {
    const std::int64_t before = device_.allocated_bytes();
    sets.push_back(make_op(device_, key, sets.size()));
    keep_from_shrinking(sets.back());
    bytes += static_cast<double>(device_.allocated_bytes() - before);
    const double seconds = run_all(sets, sets.size() - 1, 1);
    fastest = std::min(fastest, seconds);
    spent += seconds;
  }
  return {std::move(sets), Seconds(fastest)};
}

// Returns the seconds of `count` runs on consecutive operand sets, starting with set `first`.
double OpTimer::run_all(const std::vector<Op>& sets, std::size_t first, std::size_t count,
                        bool soaks, bool soaked) {
  const double hold = kHostSeconds * static_cast<double>(count + 2);
  device_.delay(soaks ? std::min(hold, kShortHold) : hold);
  const DeviceMark begin = device_.mark();
  for (std::size_t i = 0; i < count; ++i) device_.run(sets[(first + i) % sets.size()]);
  const DeviceMark end = device_.mark();
  const bool warms_up = soaks && !soaked;  // the clock is between that of short and of long work
  if (settings_.at_work && !warms_up) settings_.at_work(soaked);
  return device_.seconds_between(begin, end);
}

// Returns the number of runs that take about `length`. Measures many runs, because the time of a
// single short run is overestimated.
std::size_t OpTimer::runs_within(Seconds length, const WarmSets& warm) {
  barrier_.wait();
  if (warm.once >= length) return 1;
  const double once =
      run_all(warm.sets, 0, warm.sets.size()) / static_cast<double>(warm.sets.size());
  return static_cast<std::size_t>(
      std::clamp(std::ceil(length.value() / std::max(once, 1e-9)), 1.0, 1e4));
}

std::vector<double> OpTimer::sustained_times(const OpKey& key) {
  constexpr Seconds kStretch(0.01);  // length of a sample
  const WarmSets warm = warm_sets(key);
  const std::size_t at_a_time = runs_within(kStretch, warm);
  std::size_t first = 0;
  const auto stretch = [&](bool soaked) {
    const double seconds = run_all(warm.sets, first, at_a_time, true, soaked);
    first += at_a_time;
    device_.forget_marks();
    return seconds;
  };
  double spent = 0;
  do {
    spent += stretch(false);
  } while (!barrier_.all_agree(spent >= settings_.soak.value()));
  std::vector<double> seconds;
  for (std::size_t i = 0; i < settings_.least_samples; ++i) {
    seconds.push_back(stretch(true) / static_cast<double>(at_a_time));
  }
  return seconds;
}

std::vector<double> OpTimer::times(const OpKey& key) {
  const WarmSets warm = warm_sets(key);
  const std::size_t at_a_time = runs_within(settings_.least_sample, warm);
  const bool is_long = warm.once * static_cast<double>(kRound) > settings_.budget;
  const std::size_t round = barrier_.all_agree(is_long) ? 1 : kRound;

  std::vector<double> accepted;
  double spent = 0;  // includes waiting for the other ranks
  for (std::size_t first = 0;; device_.forget_marks()) {
    const DeviceMark begin = device_.mark();
    for (std::size_t i = 0; i < round; ++i, first += at_a_time) {
      meter_.start();
      const double seconds = run_all(warm.sets, first, at_a_time);
      if (meter_.was_alone()) accepted.push_back(seconds / static_cast<double>(at_a_time));
    }
    const bool settled = accepted.size() >= settings_.least_samples &&
                         median_and_spread(accepted).spread <= settings_.enough_spread;
    if (barrier_.all_agree(settled || spent >= settings_.budget.value())) return accepted;
    spent += device_.seconds_between(begin, device_.mark());
  }
}

}  // namespace tpsim
