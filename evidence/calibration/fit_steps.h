// Measured steps at the points of a fit: constants moved, parts of the software changed.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "evidence/calibration/measured_step.h"
#include "evidence/calibration/robust_fit.h"

namespace tpsim {

// Coordinates of all constants, in the order of their table, and parts in place of the stack's own.
struct FitPoint {
  std::vector<double> moved;
  PartValues parts;
};

// `stated` parts stay.
Scenario moved_to(Scenario scenario, const FitPoint& point, const PartValues& stated);

using StepResiduals = std::vector<double>;  // of each step: log of measured over predicted

class FitSteps {
 public:
  FitSteps(const std::vector<MeasuredStep>& steps, const CalibrationChoices& choices);

  // Of the constants' coordinates, as the steps let them be expected and their values allow.
  const std::vector<double>& spreads() const { return spreads_; }
  const std::vector<CoordinateRange>& limits() const { return limits_; }

  // An error where a step cannot be predicted.
  Result<StepResiduals> residuals_at(const FitPoint& point) const;
  // How each residual falls as each constant grows, around a point where they are `residuals`.
  // Constants of which the steps say next to nothing have no slope.
  Result<LinearProblem> linear_at(const FitPoint& point, const StepResiduals& residuals) const;

 private:
  Result<std::vector<StepResiduals>> residuals_at(const std::vector<FitPoint>& points) const;

  const std::vector<MeasuredStep>& steps_;
  int threads_ = 1;
  std::vector<char> may_move_;
  std::vector<double> spreads_;
  std::vector<CoordinateRange> limits_;
};

}  // namespace tpsim
