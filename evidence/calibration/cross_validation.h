// How well a fit predicts rows that it does not use.
#pragma once

#include <vector>

#include "evidence/calibration/fit_steps.h"

namespace tpsim {

// Returns the residuals of each layout's rows under a fit to all other rows, to first order and
// within the limits of the constants. A common error that the limits leave is therefore part of
// every residual. Returns `unfitted` if there is only one layout.
StepResiduals left_out_residuals(const std::vector<MeasuredStep>& steps,
                                 const LinearProblem& problem,
                                 const std::vector<CoordinateRange>& limits,
                                 const StepResiduals& unfitted);

// Returns the root mean square, to which a common error of all residuals contributes.
double root_mean_square(const StepResiduals& residuals);

// Returns the standard deviation of the prediction error of a new row, around zero. The result is
// widened by the quantile of Student's t, because few rows give an uncertain spread.
double spread_of(const StepResiduals& left_out, double effective_parameters);

// Returns the mean of |predicted / measured - 1|.
double mean_error(const StepResiduals& residuals);

}  // namespace tpsim
