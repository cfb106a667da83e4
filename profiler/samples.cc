#include "profiler/samples.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace tpsim {
namespace {

double median_of(std::vector<double>& numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  if (numbers.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(numbers.begin(), middle)) / 2;
}

}  // namespace

Middle middle_of(std::vector<double> numbers) {
  TPSIM_CHECK(!numbers.empty(), "a median of something");
  Middle middle{median_of(numbers)};
  for (double& number : numbers) number = std::fabs(number - middle.median);
  middle.spread = middle.median > 0 ? median_of(numbers) / middle.median : 0;
  return middle;
}

void Samples::add_steps(const std::vector<double>& seconds) {
  if (seconds.size() > 1) step_spreads_.push_back(middle_of(seconds).spread);
}

// A normal distribution's standard deviation is 1.4826 times its median absolute deviation.
double Samples::rank_jitter() const {
  constexpr double kNormal = 1.4826;
  return step_spreads_.empty() ? 0 : kNormal * middle_of(step_spreads_).median;
}

void Samples::add(const Samples& other) {
  for (const auto& [key, seconds] : other.ops_) {
    ops_[key].insert(ops_[key].end(), seconds.begin(), seconds.end());
  }
  step_spreads_.insert(step_spreads_.end(), other.step_spreads_.begin(), other.step_spreads_.end());
  for (const auto& [call, seconds] : other.collectives_) {
    collectives_[call].insert(collectives_[call].end(), seconds.begin(), seconds.end());
  }
}

std::vector<OpSample> Samples::ops() const {
  std::vector<OpSample> samples;
  for (const auto& [key, seconds] : ops_) {
    const Middle middle = middle_of(seconds);
    samples.push_back(
        {key, Seconds(middle.median), middle.spread, static_cast<int>(seconds.size())});
  }
  return samples;
}

std::vector<CollectiveSample> Samples::collectives() const {
  std::vector<CollectiveSample> samples;
  for (const auto& [call, seconds] : collectives_) {
    const auto& [kind, ranks, bytes] = call;
    samples.push_back(
        {kind, ranks, Bytes(static_cast<double>(bytes)), Seconds(middle_of(seconds).median)});
  }
  return samples;
}

}  // namespace tpsim
