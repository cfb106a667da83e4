// Robust linear regression with priors: few unknowns, measurements with outliers.
//
// Row i has the residual residual_i - sum_k slope_ik (x_k - at_k). Residuals follow Student's t
// with few degrees of freedom, so that a run on a bad node has little weight. Positive residuals
// (slow runs) have a larger scale.
//
// Each unknown has a normal prior around 0 with the given spread. An unknown stays at 0 if the rows
// contain no information about it. The noise is fitted too, with a prior that counts as a few rows.
#pragma once

#include <vector>

namespace tpsim {

struct LinearRow {
  double residual = 0;         // at the point LinearProblem::at
  std::vector<double> slopes;  // decrease of the residual per unit of each unknown
};

struct LinearProblem {
  std::vector<LinearRow> rows;
  std::vector<double> at;       // point of linearization
  std::vector<double> spreads;  // standard deviations of the unknowns' priors
};

struct RobustFit {
  std::vector<double> unknowns;
  std::vector<double> errors;       // standard deviations of the unknowns after the fit
  double noise = 0;                 // scale of the residuals
  double effective_parameters = 0;  // effective number of unknowns: trace of the hat matrix
};

RobustFit robust_fit(const LinearProblem& problem);

struct CoordinateRange {
  double least = 0, most = 0;
};
// Returns the best unknowns within limits. An unknown whose optimum is beyond a limit is fixed at
// the limit, and the others are fitted again.
std::vector<double> fit_within(LinearProblem problem, const std::vector<CoordinateRange>& limits);

// Returns -2 ln(likelihood x prior) up to a constant; smaller is better.
double badness(const std::vector<double>& residuals, const std::vector<double>& unknowns,
               const std::vector<double>& spreads, double noise);
// Returns the most likely scale of the residuals, given the prior noise.
double noise_of(const std::vector<double>& residuals);

// Returns the linearized residual of a row at `unknowns`.
double residual_at(const LinearProblem& problem, std::size_t row,
                   const std::vector<double>& unknowns);

}  // namespace tpsim
