#include "evidence/calibration/fit_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/median.h"
#include "evidence/calibration/tunable_constants.h"
#include "plans/search/parallel_for.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

// A constant stays fixed if the rows would remove less than this share of its prior variance.
constexpr double kLeastInformation = 0.02;
constexpr double kSlopeStep = 0.2;  // offset for finite differences, relative to the prior spread

// Returns an upper limit for the prior spread of an additive host time: 10 % of the median step,
// divided by how often a step contains this time.
double most_of_step(const std::vector<MeasuredStep>& steps, const TunableConstant& constant) {
  constexpr double kShare = 0.1;
  std::vector<double> most;
  for (const MeasuredStep& step : steps) {
    const std::int64_t times = constant.times == nullptr ? 1 : constant.times(step.plan);
    most.push_back(kShare * step.measured.value() / static_cast<double>(times));
  }
  return upper_median(std::move(most));
}

}  // namespace

Scenario moved_to(Scenario scenario, const FitPoint& point, const PartValues& stated) {
  if (!point.parts.empty()) {
    PartValues parts = stated;
    parts.insert(point.parts.begin(), point.parts.end());
    scenario.stack = with_parts(std::move(scenario.stack), parts);
  }
  const auto constants = tunable_constants();
  for (std::size_t k = 0; k < constants.size(); ++k) {
    if (point.moved[k] != 0) constants[k].move(scenario, point.moved[k]);
  }
  return scenario;
}

FitSteps::FitSteps(const std::vector<MeasuredStep>& steps, const CalibrationChoices& choices)
    : steps_(steps), threads_(choices.threads) {
  for (const TunableConstant& constant : tunable_constants()) {
    const bool may = constant.owner == ConstantOwner::kStack ? choices.stack : choices.cluster;
    may_move_.push_back(may ? 1 : 0);
    limits_.push_back(range_of(constant, steps.front().scenario));
    spreads_.push_back(constant.is_sum() && constant.group == ConstantGroup::kHost
                           ? std::min(constant.spread, most_of_step(steps, constant))
                           : constant.spread);
  }
}

Result<std::vector<StepResiduals>> FitSteps::residuals_at(
    const std::vector<FitPoint>& points) const {
  const std::size_t rows = steps_.size();
  std::vector<StepResiduals> all(points.size(), StepResiduals(rows));
  std::vector<std::optional<Error>> failed(points.size() * rows);
  parallel_for(static_cast<std::int64_t>(failed.size()), threads_, [&]() -> IndexWork {
    return [&](std::int64_t index) {
      const auto i = static_cast<std::size_t>(index);
      const MeasuredStep& step = steps_[i % rows];
      const FitPoint& point = points[i / rows];
      Plan plan = step.plan;
      if (plan.precision == Precision::kNone) plan.precision = point.precision;
      const Result<Prediction> predicted =
          simulate(moved_to(step.scenario, point, step.stated), plan);
      if (!predicted.ok()) {
        failed[i] = predicted.error();
      } else {
        all[i / rows][i % rows] = std::log(step.measured / predicted->step);
      }
    };
  });
  for (const auto& error : failed) {
    if (error) return *error;
  }
  return all;
}

Result<StepResiduals> FitSteps::residuals_at(const FitPoint& point) const {
  TPSIM_TRY(std::vector<StepResiduals> one, residuals_at(std::vector<FitPoint>{point}));
  return std::move(one.front());
}

Result<LinearProblem> FitSteps::linear_at(const FitPoint& point,
                                          const StepResiduals& residuals) const {
  std::vector<FitPoint> points;
  std::vector<double> steps(spreads_.size(), 0.0);
  for (std::size_t k = 0; k < spreads_.size(); ++k) {
    if (may_move_[k] == 0) continue;
    steps[k] = kSlopeStep * spreads_[k];
    if (point.moved[k] + steps[k] > limits_[k].most) steps[k] = -steps[k];
    points.push_back(point);
    points.back().moved[k] += steps[k];
  }
  TPSIM_TRY(const std::vector<StepResiduals> near, residuals_at(points));
  LinearProblem problem;
  problem.spreads = spreads_;
  problem.at = point.moved;
  for (const double residual : residuals) {
    problem.rows.push_back({residual, std::vector<double>(spreads_.size(), 0.0)});
  }
  const double noise = noise_of(residuals);
  std::size_t next = 0;
  for (std::size_t k = 0; k < spreads_.size(); ++k) {
    if (may_move_[k] == 0) continue;
    const StepResiduals& there = near[next++];
    double information = 0;
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      information += std::pow((residuals[r] - there[r]) / steps[k] * spreads_[k] / noise, 2);
    }
    if (information / (1 + information) < kLeastInformation) continue;
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      problem.rows[r].slopes[k] = (residuals[r] - there[r]) / steps[k];
    }
  }
  return problem;
}

}  // namespace tpsim
