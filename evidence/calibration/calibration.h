// Constants and parts of a stack and a cluster, fitted to measured steps.
//
// The logarithm of measured over predicted is brought down by moving the constants of
// tunable_constants() away from where they stand, each at a cost by its prior, and by
// changing single parts of the software where the rows say clearly that it is another one. No row
// has a constant of its own, and a run that lies far off moves little
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
  double moved = 0;               // along the coordinate
  double error = 0;               // standard deviation of that, with the rows known
  double prior = 0;               // and without them
  double error_of_value() const;  // likewise, of the value
  std::string error_text() const;
  // Share of the prior's variance that the rows took away: 0 where they say nothing.
  double information() const;
};

struct FittedPart {
  StackPart part{};
  std::int64_t before = 0, after = 0;
  double gain = 0;  // what it is worth, less what it must be: in twice logarithms of likelihood
};

struct FittedStep {
  std::string id;
  double measured = 0;
  double before = 0, after = 0;  // predicted
  double left_out = 0;           // predicted by a fit to rows of other groups
};

struct Calibration {
  std::vector<FittedConstant> constants;  // all that may move, in the order of their table
  std::vector<FittedPart> parts;
  std::vector<FittedStep> steps;
  // Share of the fit's way that the constants went: less than 1 where rows left out were predicted
  // worse by it than before.
  double shrinkage = 1;
  double noise = 0;                 // scale of what is left
  double effective_parameters = 0;  // effective number of constants
  // Of rows that the fit has not seen, as an interval needs it: residual_spread of the stack.
  double spread = 0;
  double host_spread = 0, kernel_spread = 0, network_spread = 0;  // see CalibrationFacts

  double error_before() const;  // mean, as a share
  double error_after() const;
  double error_left_out() const;  // as they say of rows that they have not seen
};

// With what was found; `stated` parts stay.
Scenario calibrated(Scenario scenario, const Calibration& calibration, const PartValues& stated);

// An error where no step can be predicted.
Result<Calibration> calibrate(const std::vector<MeasuredStep>& steps,
                              const CalibrationChoices& choices);

}  // namespace tpsim
