#include "evidence/calibration/cross_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/base/normal.h"

namespace tpsim {
namespace {

constexpr std::int64_t kMostFolds = 24;

}  // namespace

StepResiduals left_out_residuals(const std::vector<MeasuredStep>& steps,
                                 const LinearProblem& problem,
                                 const std::vector<CoordinateRange>& limits,
                                 const StepResiduals& unfitted) {
  std::map<std::string, std::int64_t> fold_of;
  std::vector<std::int64_t> folds;
  for (const MeasuredStep& step : steps) {
    const std::string layout =
        fmt::format("{} {} {} {} {}", step.scenario.model.hidden, gpu_count(step.plan),
                    step.plan.degrees.tp, step.plan.degrees.pp, step.plan.micro_batch);
    const auto next = static_cast<std::int64_t>(fold_of.size()) % kMostFolds;
    folds.push_back(fold_of.try_emplace(layout, next).first->second);
  }
  StepResiduals left = unfitted;
  if (fold_of.size() < 2) return left;
  for (std::int64_t fold = 0; fold < kMostFolds; ++fold) {
    LinearProblem others = problem;
    others.rows.clear();
    for (std::size_t r = 0; r < steps.size(); ++r) {
      if (folds[r] != fold) others.rows.push_back(problem.rows[r]);
    }
    if (others.rows.size() == steps.size()) continue;
    const std::vector<double> unknowns = fit_within(others, limits);
    for (std::size_t r = 0; r < steps.size(); ++r) {
      if (folds[r] == fold) left[r] = residual_at(problem, r, unknowns);
    }
  }
  return left;
}

double root_mean_square(const StepResiduals& residuals) {
  double squares = 0;
  for (const double r : residuals) squares += r * r;
  return std::sqrt(squares / static_cast<double>(residuals.size()));
}

double spread_of(const StepResiduals& left_out, double effective_parameters) {
  const auto n = static_cast<double>(left_out.size());
  const double degrees = std::max(1.0, n - effective_parameters);
  // 95 % quantile of Student's t relative to the normal distribution's, to second order
  // (Abramowitz and Stegun, 26.7.5).
  constexpr double z2 = kHalfOf90 * kHalfOf90;
  const double widening =
      1 + (z2 + 1) / (4 * degrees) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * degrees * degrees);
  return root_mean_square(left_out) * std::sqrt(1 + 1 / n) * widening;
}

double mean_error(const StepResiduals& residuals) {
  double sum = 0;
  for (const double r : residuals) sum += std::fabs(std::expm1(-r));
  return sum / static_cast<double>(residuals.size());
}

}  // namespace tpsim
