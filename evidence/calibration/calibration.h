// Fits constants and parts of a stack and a cluster to measured steps.
//
// Minimizes the logarithm of measured over predicted time. The constants of tunable_constants()
// move away from their values, each at a cost by its prior. Single parts of the software change if
// the rows clearly indicate another value.
//
// Rows do not have individual constants. Outliers have little weight
// (evidence/calibration/robust_fit.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  double before = 0, after = 0;   // values
  double moved = 0;               // change of the coordinate
  double error = 0;               // standard deviation of the change, given the rows
  double prior = 0;               // and without the rows
  double error_of_value() const;  // likewise, of the value
  std::string error_text() const;
  // Returns the share of the prior's variance that the rows removed; 0: the rows have no
  // information.
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
  double before = 0, after = 0;  // predicted
  double left_out = 0;           // predicted by a fit to rows of other groups
};

struct Calibration {
  std::vector<FittedConstant> constants;  // all tunable constants, in the order of their table
  std::vector<FittedPart> parts;
  std::vector<FittedStep> steps;
  // Share of the fitted change that is applied. Less than 1 if the full change predicts left-out
  // rows worse than no change.
  double shrinkage = 1;
  double noise = 0;                 // scale of the residuals
  double effective_parameters = 0;  // effective number of constants
  // Spread for rows that the fit has not seen: the stack's residual_spread for intervals.
  double spread = 0;
  double host_spread = 0, kernel_spread = 0, network_spread = 0;  // see CalibrationFacts

  double error_before() const;  // mean relative error
  double error_after() const;
  double error_left_out() const;  // likewise, for left-out rows
};

// Applies the fitted values. `stated` parts are kept.
Scenario calibrated(Scenario scenario, const Calibration& calibration, const PartValues& stated);

// Returns an error if a step cannot be predicted.
Result<Calibration> calibrate(const std::vector<MeasuredStep>& steps,
                              const CalibrationChoices& choices);

}  // namespace tpsim
