// Fits a linear model with few unknowns to measurements with outliers.
//
// Row i has the residual residual_i - sum_k slope_ik (x_k - at_k). Residuals follow Student's t
// with few degrees of freedom, so that a run on a bad node has little weight. Positive residuals
// (slow runs) have a larger scale.
//
// Unknowns have normal priors around 0 with the given spreads. Unknowns without information in the
// rows keep their value. The noise is fitted too, with a prior worth a few rows.
#pragma once

#include <vector>

namespace tpsim {

struct LinearRow {
  double residual = 0;         // at the point `at`
  std::vector<double> slopes;  // decrease of the residual per unit of each unknown
};

struct LinearProblem {
  std::vector<LinearRow> rows;
  std::vector<double> at;       // point of linearization
  std::vector<double> spreads;  // standard deviations of the unknowns' priors
};

struct RobustFit {
  std::vector<double> unknowns;
  std::vector<double> errors;       // standard deviations of the unknowns, given the rows
  double noise = 0;                 // scale of the residuals
  double effective_parameters = 0;  // effective number of unknowns: trace of the hat matrix
};

RobustFit robust_fit(const LinearProblem& problem);

struct CoordinateRange {
  double least = 0, most = 0;
};
// Returns the best unknowns within limits. Unknowns beyond a limit are fixed there, and the others
// are fitted again.
std::vector<double> fit_within(LinearProblem problem, const std::vector<CoordinateRange>& limits);

// Returns -2 ln(likelihood x prior) up to a constant; smaller is better.
double badness(const std::vector<double>& residuals, const std::vector<double>& unknowns,
               const std::vector<double>& spreads, double noise);
// Returns the most likely scale of the residuals.
double noise_of(const std::vector<double>& residuals);

// Returns the residual of a row at `unknowns`.
double residual_at(const LinearProblem& problem, std::size_t row,
                   const std::vector<double>& unknowns);

}  // namespace tpsim
