// A linear model of few unknowns fitted to measurements of which some lie far off.
//
// Row i leaves residual_i - sum_k slope_ik (x_k - at_k). Residuals are Student's of few degrees of
// freedom, wider where they are positive (a run that took longer), so that a run on a bad node
// moves little; unknowns are normal around 0 with the given spreads, so that what rows say nothing
// of stays where it was. The scale of residuals is found with them, from a prior worth some rows.
#pragma once

#include <vector>

namespace tpsim {

struct LinearRow {
  double residual = 0;         // at the point `at`
  std::vector<double> slopes;  // by which it falls as the unknowns grow
};

struct LinearProblem {
  std::vector<LinearRow> rows;
  std::vector<double> at;       // where the rows were made linear
  std::vector<double> spreads;  // of the unknowns' priors
};

struct RobustFit {
  std::vector<double> unknowns;
  std::vector<double> errors;       // their standard deviations, with the rows known
  double noise = 0;                 // scale of the residuals
  double effective_parameters = 0;  // effective number of unknowns: trace of the hat matrix
};

RobustFit robust_fit(const LinearProblem& problem);

struct CoordinateRange {
  double least = 0, most = 0;
};
// The unknowns that fit best within limits: what lies beyond one is held there, and the others make
// up for it.
std::vector<double> fit_within(LinearProblem problem, const std::vector<CoordinateRange>& limits);

// Twice the negative logarithm of what a fit is worth: smaller is better.
double badness(const std::vector<double>& residuals, const std::vector<double>& unknowns,
               const std::vector<double>& spreads, double noise);
// The scale of residuals that goes best with them.
double noise_of(const std::vector<double>& residuals);

// What row i leaves at `unknowns`.
double residual_at(const LinearProblem& problem, std::size_t row,
                   const std::vector<double>& unknowns);

}  // namespace tpsim
