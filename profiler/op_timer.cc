#include "profiler/op_timer.h"

#include <algorithm>
#include <cmath>

#include "kernels/op_cases.h"
#include "profiler/samples.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostSets = 64;
// Samples between two looks at whether all ranks have enough.
constexpr std::size_t kRound = 5;

// An op that works in place must not shrink its operand run by run down to denormal numbers, on
// which processors are slow. Growing to infinity and NaN costs nothing.
void keep_from_shrinking(Op& op) {
  if (auto* scale = std::get_if<Scale>(&op)) scale->factor = 1.0F;
  if (auto* softmax = std::get_if<SoftmaxBackward>(&op)) {
    softmax->scale = static_cast<float>(softmax->probs.cols());
  }
}

std::vector<Op> operand_sets(Device& device, const OpKey& key, Bytes rotated) {
  std::vector<Op> sets;
  double bytes = 0;
  while (sets.size() < kMostSets && bytes < rotated.value()) {
    const std::int64_t before = device.allocated_bytes();
    sets.push_back(make_op(device, key, sets.size()));
    keep_from_shrinking(sets.back());
    bytes += static_cast<double>(device.allocated_bytes() - before);
  }
  return sets;
}

}  // namespace

// Seconds for `count` runs on consecutive sets.
double OpTimer::run_all(const std::vector<Op>& sets, std::size_t first, std::size_t count) {
  const DeviceMark begin = device_.mark();
  for (std::size_t i = 0; i < count; ++i) {
    std::visit([&](const auto& op) { device_.run(op); }, sets[(first + i) % sets.size()]);
  }
  return device_.seconds_between(begin, device_.mark());
}

std::vector<double> OpTimer::times(const OpKey& key) {
  const std::vector<Op> sets = operand_sets(device_, key, settings_.rotated);
  run_all(sets, 0, sets.size());
  lockstep_.wait();
  const double once = run_all(sets, 0, sets.size()) / static_cast<double>(sets.size());
  const auto at_a_time = static_cast<std::size_t>(
      std::clamp(std::ceil(settings_.least_sample.value() / std::max(once, 1e-9)), 1.0, 1e4));

  std::vector<double> accepted;
  double spent = 0;  // waiting for the other ranks included
  for (std::size_t first = 0;; device_.forget_marks()) {
    const DeviceMark begin = device_.mark();
    for (std::size_t i = 0; i < kRound; ++i, first += at_a_time) {
      meter_.start();
      const double seconds = run_all(sets, first, at_a_time);
      if (meter_.was_alone()) accepted.push_back(seconds / static_cast<double>(at_a_time));
    }
    const bool settled = accepted.size() >= settings_.least_samples &&
                         middle_of(accepted).spread <= settings_.enough_spread;
    if (lockstep_.all_agree(settled || spent >= settings_.budget.value())) return accepted;
    spent += device_.seconds_between(begin, device_.mark());
  }
}

}  // namespace tpsim
