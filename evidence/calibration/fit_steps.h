// Residuals of measured steps and their derivatives, at any point of a fit.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "evidence/calibration/measured_step.h"
#include "evidence/calibration/robust_fit.h"

namespace tpsim {

// A point of the fit: coordinates of all constants, in the order of tunable_constants(), software
// parts that replace the stack's, and the precision of plans without one.
struct FitPoint {
  std::vector<double> moved;
  PartValues parts;
  Precision precision = Precision::kNone;
};

// Applies the point to a scenario. Parts in `stated` keep their value.
Scenario moved_to(Scenario scenario, const FitPoint& point, const PartValues& stated);

using StepResiduals = std::vector<double>;  // per step: log of measured over predicted time

class FitSteps {
 public:
  FitSteps(const std::vector<MeasuredStep>& steps, const CalibrationChoices& choices);

  // Prior spreads and limits of the coordinates. Spreads of additive host times are at most a share
  // of the measured step.
  const std::vector<double>& spreads() const { return spreads_; }
  const std::vector<CoordinateRange>& limits() const { return limits_; }

  // Returns an error if a step cannot be predicted.
  Result<StepResiduals> residuals_at(const FitPoint& point) const;
  // Linearizes the residuals by finite differences. `residuals` are those at `point`. A positive
  // slope means that a larger constant reduces the residual. Constants about which the rows have
  // almost no information have slope 0.
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
