#include "evidence/calibration/robust_fit.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr double kFreedom = 3;
constexpr double kPriorRows = 8;
// Prior noise: steps of the same run differ by a few percent.
constexpr double kPriorNoise = 0.02;
// Scale of positive residuals (slow runs) relative to negative ones. Other jobs, throttling and bad
// nodes make runs slower, never faster.
constexpr double kSkew = 1.2;
constexpr double kLeastNoise = 0.005;

using Eigen::MatrixXd;
using Eigen::VectorXd;

Eigen::Map<const VectorXd> vector(const std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

double scaled(double residual, double noise) {
  return residual > 0 ? residual / (kSkew * noise) : residual * kSkew / noise;
}

double weight(double residual, double noise) {
  const double z = scaled(residual, noise);
  const double scale = residual > 0 ? 1 / kSkew : kSkew;
  return (kFreedom + 1) / (kFreedom + z * z) * scale * scale;
}

// Normal equations of weighted least squares. A row's weight depends on its residual at the current
// unknowns, and includes division by the squared noise.
struct NormalEquations {
  MatrixXd information;  // sum of weight x slope x slope
  VectorXd right;        // sum of weight x slope x (residual at unknowns = 0)
};

NormalEquations normal_equations(const LinearProblem& problem, const std::vector<double>& residuals,
                                 double noise) {
  const auto n = static_cast<Eigen::Index>(problem.at.size());
  NormalEquations sums{MatrixXd::Zero(n, n), VectorXd::Zero(n)};
  for (std::size_t r = 0; r < problem.rows.size(); ++r) {
    const auto slopes = vector(problem.rows[r].slopes);
    const double w = weight(residuals[r], noise) / (noise * noise);
    sums.information += w * slopes * slopes.transpose();
    sums.right += w * (problem.rows[r].residual + slopes.dot(vector(problem.at))) * slopes;
  }
  return sums;
}

std::vector<double> residuals_at(const LinearProblem& problem,
                                 const std::vector<double>& unknowns) {
  std::vector<double> residuals;
  for (std::size_t r = 0; r < problem.rows.size(); ++r) {
    residuals.push_back(residual_at(problem, r, unknowns));
  }
  return residuals;
}

}  // namespace

double noise_of(const std::vector<double>& residuals) {
  double noise = kPriorNoise;
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    double squares = kPriorRows * kPriorNoise * kPriorNoise;
    for (const double r : residuals) squares += weight(r, noise) * r * r;
    noise = std::sqrt(squares / (kPriorRows + static_cast<double>(residuals.size())));
  }
  return std::max(kLeastNoise, noise);
}

double badness(const std::vector<double>& residuals, const std::vector<double>& unknowns,
               const std::vector<double>& spreads, double noise) {
  double sum = kPriorRows * (2 * std::log(noise) + std::pow(kPriorNoise / noise, 2));
  for (const double r : residuals) {
    sum +=
        (kFreedom + 1) * std::log1p(std::pow(scaled(r, noise), 2) / kFreedom) + 2 * std::log(noise);
  }
  for (std::size_t k = 0; k < unknowns.size(); ++k) sum += std::pow(unknowns[k] / spreads[k], 2);
  return sum;
}

double residual_at(const LinearProblem& problem, std::size_t row,
                   const std::vector<double>& unknowns) {
  const LinearRow& r = problem.rows[row];
  return r.residual - vector(r.slopes).dot(vector(unknowns) - vector(problem.at));
}

RobustFit robust_fit(const LinearProblem& problem) {
  RobustFit fit;
  fit.unknowns = problem.at;
  const MatrixXd prior = vector(problem.spreads).array().square().inverse().matrix().asDiagonal();
  constexpr int kRounds = 40;
  for (int round = 0;; ++round) {
    const std::vector<double> residuals = residuals_at(problem, fit.unknowns);
    fit.noise = noise_of(residuals);
    const NormalEquations sums = normal_equations(problem, residuals, fit.noise);
    const Eigen::LLT<MatrixXd> solver(sums.information + prior);
    TPSIM_CHECK(solver.info() == Eigen::Success, "priors keep normal equations positive");
    if (round < kRounds) {
      const VectorXd solved = solver.solve(sums.right);
      fit.unknowns.assign(solved.begin(), solved.end());
      continue;
    }
    const MatrixXd covariance = solver.solve(MatrixXd::Identity(prior.rows(), prior.cols()));
    const VectorXd errors = covariance.diagonal().cwiseSqrt();
    fit.errors.assign(errors.begin(), errors.end());
    fit.effective_parameters = (covariance * sums.information).trace();
    return fit;
  }
}

std::vector<double> fit_within(LinearProblem problem, const std::vector<CoordinateRange>& limits) {
  std::vector<double> best = robust_fit(problem).unknowns;
  std::vector<bool> is_held(best.size(), false);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t k = 0; k < best.size(); ++k) {
      const double held = std::clamp(best[k], limits[k].least, limits[k].most);
      if (is_held[k] || held == best[k]) continue;
      for (LinearRow& row : problem.rows) {
        row.residual -= row.slopes[k] * (held - problem.at[k]);
        row.slopes[k] = 0;
      }
      best[k] = problem.at[k] = held;
      is_held[k] = goes_on = true;
    }
    if (!goes_on) break;
    const RobustFit fit = robust_fit(problem);
    for (std::size_t k = 0; k < best.size(); ++k) {
      if (!is_held[k]) best[k] = fit.unknowns[k];
    }
  }
  return best;
}

}  // namespace tpsim
