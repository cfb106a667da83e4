#include "evidence/calibration/contradictions.h"

#include <algorithm>
#include <cmath>

#include "core/base/median.h"

namespace tpsim {

std::vector<std::size_t> contradicting_steps(const std::vector<FittedStep>& steps) {
  constexpr std::size_t kLeastSteps = 4;
  constexpr double kLeastGap = 0.1;
  constexpr double kDeviations = 4;
  constexpr double kNormal = 1.4826;  // standard / median absolute deviation, normal distribution
  std::vector<std::size_t> found;
  if (steps.size() < kLeastSteps) return found;
  std::vector<double> ratios;
  for (const FittedStep& step : steps) ratios.push_back(std::log(step.measured / step.left_out));
  const double center = median(ratios);
  std::vector<double> gaps;
  for (const double ratio : ratios) gaps.push_back(std::fabs(ratio - center));
  const double limit = std::max(kLeastGap, kDeviations * kNormal * median(gaps));
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i] > limit) found.push_back(i);
  }
  return found;
}

}  // namespace tpsim
