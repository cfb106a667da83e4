// Calibration: fits the constants and software parts of a stack and a cluster to measured steps.
//
// The residual of a row is the logarithm of measured over predicted time. Each constant has a prior
// around its present value, so that it moves only if the rows support the change. Software parts
// change only if the rows clearly indicate another value.
//
// All rows share the same constants. Outliers have little weight
// (evidence/calibration/robust_fit.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"
#include "evidence/calibration/measured_step.h"
#include "evidence/calibration/tunable_constants.h"

namespace tpsim {

struct FittedConstant {
  const TunableConstant* constant = nullptr;
  double before = 0, after = 0;   // values of the constant
  double moved = 0;               // change of the fitted coordinate (see TunableConstant)
  double error = 0;               // standard deviation of the coordinate after the fit
  double prior = 0;               // standard deviation of the coordinate before the fit
  double error_of_value() const;  // standard deviation of the value after the fit
  std::string error_text() const;
  // Returns the share of the prior variance that the rows removed. 0: the rows contain no
  // information about the constant.
  double information() const;
};

struct FittedPart {
  StackPart part{};
  std::int64_t before = 0, after = 0;
  double gain = 0;  // gain minus the required gain, in units of 2 ln(likelihood)
};

struct FittedStep {
  std::string id;
  double measured = 0;
  double before = 0, after = 0;  // predicted, in seconds
  double left_out = 0;           // predicted by a fit to the rows of other layouts
};

struct Calibration {
  std::vector<FittedConstant> constants;  // all tunable constants, in the order of their table
  std::vector<FittedPart> parts;
  // The recipe of low precision with which the rows would fit clearly better. It is not applied,
  // because the plan of a row states its precision.
  std::optional<Precision> suspected_precision;
  std::vector<FittedStep> steps;
  // Share of the fitted changes that is applied. It is below 1 if the full changes predict left-out
  // rows worse than a smaller share.
  double shrinkage = 1;
  double noise = 0;                 // scale of the residuals, in log(measured / predicted)
  double effective_parameters = 0;  // effective number of constants
  // Spread of predictions for new runs, used as the stack's residual_spread in intervals.
  double spread = 0;
  double host_spread = 0, kernel_spread = 0, network_spread = 0;  // see CalibrationFacts

  double error_before() const;  // mean relative error
  double error_after() const;
  double error_left_out() const;  // mean relative error on left-out rows
  // Mean of log(measured / predicted) after the fit. Fitted constants that reached their limits
  // leave a common error.
  double bias() const;
};

// Applies the fitted values to a scenario. Parts in `stated` keep their value.
Scenario calibrated(Scenario scenario, const Calibration& calibration, const PartValues& stated);

// Returns an error if `steps` is empty or a step cannot be predicted.
Result<Calibration> calibrate(const std::vector<MeasuredStep>& steps,
                              const CalibrationChoices& choices);

}  // namespace tpsim
