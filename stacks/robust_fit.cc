#include "stacks/robust_fit.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace tpsim {
namespace {

constexpr double kFreedom = 3;
constexpr double kPriorRows = 8;
// Of steps that are predicted with everything known, and repeated: a few percent.
constexpr double kPriorNoise = 0.02;
// Of a run that takes longer than it should, over that of one that takes less: neighbours, heat and
// bad nodes only slow down.
constexpr double kSkew = 1.2;
constexpr double kLeastNoise = 0.005;

using Matrix = std::vector<std::vector<double>>;

// A symmetric positive matrix as L times its transpose; L, in the lower half.
Matrix cholesky(Matrix a) {
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      TPSIM_CHECK(i != j || sum > 0, "priors keep normal equations positive");
      a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
    }
  }
  return a;
}

std::vector<double> solve(const Matrix& lower, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower[i][k] * b[k];
    b[i] /= lower[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= lower[k][i] * b[k];
    b[i] /= lower[i][i];
  }
  return b;
}

double scaled(double residual, double noise) {
  return residual > 0 ? residual / (kSkew * noise) : residual * kSkew / noise;
}

double weight(double residual, double noise) {
  const double z = scaled(residual, noise);
  const double scale = residual > 0 ? 1 / kSkew : kSkew;
  return (kFreedom + 1) / (kFreedom + z * z) * scale * scale;
}

// Sum over rows of weight x slope x slope, over the noise's square: what they tell.
Matrix information(const LinearProblem& problem, const std::vector<double>& residuals,
                   double noise) {
  const std::size_t n = problem.at.size();
  Matrix told(n, std::vector<double>(n, 0.0));
  for (std::size_t r = 0; r < problem.rows.size(); ++r) {
    const std::vector<double>& slopes = problem.rows[r].slopes;
    const double w = weight(residuals[r], noise) / (noise * noise);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) told[i][j] += w * slopes[i] * slopes[j];
    }
  }
  return told;
}

Matrix with_prior(Matrix told, const std::vector<double>& spreads) {
  for (std::size_t i = 0; i < spreads.size(); ++i) told[i][i] += 1 / (spreads[i] * spreads[i]);
  return told;
}

std::vector<double> residuals_at(const LinearProblem& problem,
                                 const std::vector<double>& unknowns) {
  std::vector<double> residuals;
  for (std::size_t r = 0; r < problem.rows.size(); ++r) {
    residuals.push_back(residual_at(problem, r, unknowns));
  }
  return residuals;
}

// The unknowns that solve the weighted problem, where rows weigh as these residuals do.
std::vector<double> weighted_solution(const LinearProblem& problem,
                                      const std::vector<double>& residuals, const Matrix& lower,
                                      double noise) {
  const std::size_t n = problem.at.size();
  std::vector<double> right(n, 0.0);
  for (std::size_t r = 0; r < problem.rows.size(); ++r) {
    const LinearRow& row = problem.rows[r];
    double at_zero = row.residual;
    for (std::size_t k = 0; k < n; ++k) at_zero += row.slopes[k] * problem.at[k];
    const double w = weight(residuals[r], noise) / (noise * noise);
    for (std::size_t k = 0; k < n; ++k) right[k] += w * row.slopes[k] * at_zero;
  }
  return solve(lower, std::move(right));
}

void add_errors(RobustFit& fit, const Matrix& told, const Matrix& lower) {
  const std::size_t n = told.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> unit(n, 0.0);
    unit[i] = 1;
    const std::vector<double> column = solve(lower, std::move(unit));
    fit.errors.push_back(std::sqrt(column[i]));
    for (std::size_t k = 0; k < n; ++k) fit.freedom += column[k] * told[k][i];
  }
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
  double residual = r.residual;
  for (std::size_t k = 0; k < unknowns.size(); ++k) {
    residual -= r.slopes[k] * (unknowns[k] - problem.at[k]);
  }
  return residual;
}

RobustFit robust_fit(const LinearProblem& problem) {
  RobustFit fit;
  fit.unknowns = problem.at;
  constexpr int kRounds = 40;
  for (int round = 0;; ++round) {
    const std::vector<double> residuals = residuals_at(problem, fit.unknowns);
    fit.noise = noise_of(residuals);
    const Matrix told = information(problem, residuals, fit.noise);
    const Matrix lower = cholesky(with_prior(told, problem.spreads));
    if (round == kRounds) {
      add_errors(fit, told, lower);
      return fit;
    }
    fit.unknowns = weighted_solution(problem, residuals, lower, fit.noise);
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
