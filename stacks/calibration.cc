#include "stacks/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "plans/parallel_for.h"
#include "sim/simulate.h"
#include "sim/usual_spreads.h"
#include "stacks/robust_fit.h"

namespace tpsim {
namespace {

constexpr int kMostDescents = 12;
constexpr std::size_t kMostParts = 2;
constexpr std::size_t kLeastRowsForParts = 8;
// A changed part must be worth one of thirty choices, and then some.
constexpr double kPartCost = 12;
// Constants of which the rows say less than this share are left alone.
constexpr double kLeastTold = 0.02;
constexpr double kSlopeStep = 0.2;  // of a prior's spread
constexpr std::int64_t kMostFolds = 24;

// A point of the fit: coordinates of all constants, and parts in place of the stack's own.
struct Point {
  std::vector<double> moved;
  PartValues parts;
};

Scenario at(Scenario scenario, const Point& point, const PartValues& stated) {
  for (const auto& [part, value] : point.parts) {
    if (!stated.contains(part)) row_of(part).set(scenario.stack, value);
  }
  const auto constants = tunable_constants();
  for (std::size_t k = 0; k < constants.size(); ++k) {
    if (point.moved[k] != 0) constants[k].move(scenario, point.moved[k]);
  }
  return scenario;
}

// What the host may take of a step by its prior: a tenth of the median one.
double most_of_step(const std::vector<MeasuredStep>& steps) {
  constexpr double kShare = 0.1;
  std::vector<double> times;
  for (const MeasuredStep& step : steps) times.push_back(step.measured.value());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return kShare * *middle;
}

class Fitter {
 public:
  Fitter(const std::vector<MeasuredStep>& steps, const CalibrationChoices& choices)
      : steps_(steps), choices_(choices) {
    for (const TunableConstant& constant : tunable_constants()) {
      const bool may = constant.owner == ConstantOwner::kStack ? choices.stack : choices.cluster;
      may_move_.push_back(may ? 1 : 0);
      limits_.push_back(range_of(constant, steps.front().scenario));
      spreads_.push_back(constant.is_sum && constant.group == ConstantGroup::kHost
                             ? std::min(constant.spread, most_of_step(steps))
                             : constant.spread);
    }
  }

  Result<Calibration> fit() {
    here_.moved.assign(spreads_.size(), 0.0);
    TPSIM_TRY(residuals_, residuals_at(here_));
    start_ = residuals_;
    TPSIM_TRY_STATUS(descend());
    bool changed = choices_.stack && steps_.size() >= kLeastRowsForParts;
    while (changed && parts_.size() < kMostParts) {
      TPSIM_TRY(changed, changed_for_the_better());
    }
    return result();
  }

 private:
  using Residuals = std::vector<double>;

  void show(double share) const {
    if (choices_.progress) choices_.progress(share);
  }

  // Of all steps at several points; one that cannot be predicted at a point is an error.
  Result<std::vector<Residuals>> residuals_at(const std::vector<Point>& points) const {
    const std::size_t rows = steps_.size();
    std::vector<Residuals> all(points.size(), Residuals(rows));
    std::vector<std::optional<Error>> failed(points.size() * rows);
    parallel_for(static_cast<std::int64_t>(failed.size()), choices_.threads, [&]() -> IndexWork {
      return [&](std::int64_t index) {
        const auto i = static_cast<std::size_t>(index);
        const MeasuredStep& step = steps_[i % rows];
        const Result<Prediction> predicted =
            simulate(at(step.scenario, points[i / rows], step.stated), step.plan);
        if (!predicted.ok()) {
          failed[i] = predicted.error();
        } else {
          all[i / rows][i % rows] = std::log(step.measured / predicted->step);
        }
      };
    });
    for (const auto& error : failed) {
      if (error) return *error;
    }
    return all;
  }
  Result<Residuals> residuals_at(const Point& point) const {
    TPSIM_TRY(std::vector<Residuals> one, residuals_at(std::vector<Point>{point}));
    return std::move(one.front());
  }

  // How each row's residual falls as each constant grows, at the present point.
  Status find_slopes() {
    std::vector<Point> points;
    std::vector<double> steps(spreads_.size(), 0.0);
    for (std::size_t k = 0; k < spreads_.size(); ++k) {
      if (may_move_[k] == 0) continue;
      steps[k] = kSlopeStep * spreads_[k];
      if (here_.moved[k] + steps[k] > limits_[k].most) steps[k] = -steps[k];
      points.push_back(here_);
      points.back().moved[k] += steps[k];
    }
    TPSIM_TRY(const std::vector<Residuals> near, residuals_at(points));
    problem_.spreads = spreads_;
    problem_.at = here_.moved;
    problem_.rows.assign(steps_.size(), {0.0, std::vector<double>(spreads_.size(), 0.0)});
    std::size_t point = 0;
    const double noise = noise_of(residuals_);
    for (std::size_t k = 0; k < spreads_.size(); ++k) {
      if (may_move_[k] == 0) continue;
      double told = 0;
      for (std::size_t r = 0; r < steps_.size(); ++r) {
        const double slope = (residuals_[r] - near[point][r]) / steps[k];
        problem_.rows[r].slopes[k] = slope;
        told += std::pow(slope * spreads_[k] / noise, 2);
      }
      ++point;
      if (told / (1 + told) < kLeastTold) may_move_[k] = 0;
    }
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      problem_.rows[r].residual = residuals_[r];
      for (std::size_t k = 0; k < spreads_.size(); ++k) {
        if (may_move_[k] == 0) problem_.rows[r].slopes[k] = 0;
      }
    }
    return Ok{};
  }

  double badness_of(const Residuals& residuals, const std::vector<double>& moved) const {
    return badness(residuals, moved, spreads_, noise_of(residuals));
  }

  // Where the linear problem is solved best within the limits: what lies beyond one is held there,
  // and the others make up for it.
  std::vector<double> best_within_limits() const {
    LinearProblem problem = problem_;
    std::vector<double> best = fit_.unknowns;
    std::vector<bool> is_held(best.size(), false);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t k = 0; k < best.size(); ++k) {
        const double held = std::clamp(best[k], limits_[k].least, limits_[k].most);
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

  // Gauss and Newton's steps, each as long as it helps.
  Status descend() {
    for (int round = 0; round < kMostDescents; ++round) {
      TPSIM_TRY_STATUS(find_slopes());
      fit_ = robust_fit(problem_);
      const std::vector<double> wanted = best_within_limits();
      const double before = badness_of(residuals_, here_.moved);
      bool better = false;
      double furthest = 0;
      for (double length = 1; length > 0.1 && !better; length /= 2) {
        Point next = here_;
        furthest = 0;
        for (std::size_t k = 0; k < spreads_.size(); ++k) {
          const double step = length * (wanted[k] - here_.moved[k]);
          next.moved[k] = std::clamp(here_.moved[k] + step, limits_[k].least, limits_[k].most);
          furthest = std::max(furthest, std::fabs(step) / spreads_[k]);
        }
        TPSIM_TRY(Residuals there, residuals_at(next));
        if (badness_of(there, next.moved) >= before) continue;
        better = true;
        here_ = std::move(next);
        residuals_ = std::move(there);
      }
      show(std::min(0.95, 0.15 * (round + 1)));
      constexpr double kNothing = 0.05;
      if (!better || furthest < kNothing) break;
    }
    TPSIM_TRY_STATUS(find_slopes());
    fit_ = robust_fit(problem_);
    return Ok{};
  }

  // Parts of the first step's software that no row states and that are one of some words.
  std::vector<std::pair<StackPart, std::int64_t>> other_parts() const {
    std::vector<std::pair<StackPart, std::int64_t>> all;
    for (const PartRow& row : part_rows()) {
      const bool is_open = std::any_of(steps_.begin(), steps_.end(), [&](const MeasuredStep& s) {
        return !s.stated.contains(row.part);
      });
      const bool was_changed = here_.parts.contains(row.part);
      if (!is_open || was_changed || row.is_set || row.is_ratio) continue;
      for (const PartWord& word : row.words) {
        if (word.value != row.get(steps_.front().scenario.stack)) {
          all.emplace_back(row.part, word.value);
        }
      }
    }
    return all;
  }

  // What was chosen to first order must hold when its constants have moved.
  Result<bool> changed_for_the_better() {
    const Point point = here_;
    const Residuals residuals = residuals_;
    const LinearProblem problem = problem_;
    const RobustFit fit = fit_;
    const double before = badness_of(residuals_, here_.moved);
    TPSIM_TRY(const bool changed, change_a_part());
    if (!changed) return false;
    TPSIM_TRY_STATUS(descend());
    if (badness_of(residuals_, here_.moved) < before - kPartCost / 2) return true;
    here_ = point;
    residuals_ = residuals;
    problem_ = problem;
    fit_ = fit;
    parts_.pop_back();
    return false;
  }

  // The part whose change, with constants moved along, explains the rows best.
  Result<bool> change_a_part() {
    std::vector<Point> points;
    for (const auto& [part, value] : other_parts()) {
      points.push_back(here_);
      points.back().parts[part] = value;
    }
    const double now = badness_of(residuals_, here_.moved);
    double best = now - kPartCost;
    std::optional<Point> chosen;
    for (const Point& point : points) {
      const Result<Residuals> there = residuals_at(point);
      if (!there.ok()) continue;  // what these plans cannot have
      LinearProblem problem = problem_;
      for (std::size_t r = 0; r < steps_.size(); ++r) problem.rows[r].residual = (*there)[r];
      const RobustFit fit = robust_fit(problem);
      Residuals left;
      for (std::size_t r = 0; r < steps_.size(); ++r) {
        left.push_back(residual_at(problem, r, fit.unknowns));
      }
      const double badness = badness_of(left, fit.unknowns);
      if (badness >= best) continue;
      best = badness;
      chosen = point;
    }
    if (!chosen) return false;
    for (const auto& [part, value] : chosen->parts) {
      if (here_.parts.contains(part)) continue;
      parts_.push_back(
          {part, row_of(part).get(steps_.front().scenario.stack), value, now - kPartCost - best});
    }
    here_ = *std::move(chosen);
    TPSIM_TRY(residuals_, residuals_at(here_));
    return true;
  }

  // Rows of one layout are left out together; a fit to the others predicts them.
  Residuals left_out() const {
    std::map<std::string, std::int64_t> fold_of;
    std::vector<std::int64_t> folds;
    for (const MeasuredStep& step : steps_) {
      const std::string layout =
          fmt::format("{} {} {} {} {}", step.scenario.model.hidden, gpu_count(step.plan),
                      step.plan.degrees.tp, step.plan.degrees.pp, step.plan.micro_batch);
      const auto next = static_cast<std::int64_t>(fold_of.size()) % kMostFolds;
      folds.push_back(fold_of.try_emplace(layout, next).first->second);
    }
    Residuals left = start_;  // a single layout has no others
    if (fold_of.size() < 2) return left;
    for (std::int64_t fold = 0; fold < kMostFolds; ++fold) {
      LinearProblem others = problem_;
      others.rows.clear();
      for (std::size_t r = 0; r < steps_.size(); ++r) {
        if (folds[r] != fold) others.rows.push_back(problem_.rows[r]);
      }
      if (others.rows.size() == steps_.size()) continue;
      const RobustFit fit = robust_fit(others);
      for (std::size_t r = 0; r < steps_.size(); ++r) {
        if (folds[r] == fold) left[r] = residual_at(problem_, r, fit.unknowns);
      }
    }
    return left;
  }

  // What rows leave open of a group's sum: a step moves by the group's share as the sum moves.
  double group_spread(ConstantGroup group, double usual) const {
    const auto constants = tunable_constants();
    double told = 1 / (usual * usual);
    for (const LinearRow& row : problem_.rows) {
      double share = 0;
      for (std::size_t k = 0; k < spreads_.size(); ++k) {
        if (constants[k].group == group) share += std::fabs(row.slopes[k]) * scale_of(k);
      }
      told += std::pow(std::min(1.0, share) / fit_.noise, 2);
    }
    return 1 / std::sqrt(told);
  }

  // The change of a coordinate that changes the constant by all of itself.
  double scale_of(std::size_t k) const {
    const TunableConstant& constant = tunable_constants()[k];
    return constant.is_sum ? constant.value(steps_.front().scenario) : 1;
  }

  Result<Calibration> result() {
    Calibration c;
    const Residuals left = left_out();
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      const double measured = steps_[r].measured.value();
      c.steps.push_back({steps_[r].id, measured, measured * std::exp(-start_[r]),
                         measured * std::exp(-residuals_[r]), measured * std::exp(-left[r])});
    }
    const Scenario& first = steps_.front().scenario;
    const Scenario after = at(first, here_, {});
    const auto constants = tunable_constants();
    for (std::size_t k = 0; k < constants.size(); ++k) {
      const bool is_owned =
          constants[k].owner == ConstantOwner::kStack ? choices_.stack : choices_.cluster;
      if (!is_owned) continue;
      c.constants.push_back({&constants[k], constants[k].value(first), constants[k].value(after),
                             here_.moved[k], fit_.errors[k], spreads_[k]});
    }
    c.parts = parts_;
    c.noise = fit_.noise;
    c.freedom = fit_.freedom;
    c.host_spread = group_spread(ConstantGroup::kHost, kHostSpread);
    c.network_spread = group_spread(ConstantGroup::kNetwork, kNetworkSpread);
    c.kernel_spread = group_spread(ConstantGroup::kKernels, kKernelSpread);
    // Rows that fit badly are no reason to know less than nobody's rows do.
    c.spread = std::min(spread_of(left), std::hypot(first.stack.residual_spread, kForeignSpread));
    show(1);
    return c;
  }

  // As one more row needs it: what few rows say of their spread is widened as Student's t is.
  double spread_of(const Residuals& left) const {
    double squares = 0;
    for (const double r : left) squares += r * r;
    const auto n = static_cast<double>(left.size());
    const double degrees = std::max(1.0, n - fit_.freedom);
    // The 95 % quantile of Student's t over the normal's, to second order (Abramowitz and Stegun,
    // 26.7.5).
    constexpr double kNormal = 1.645;
    const double z2 = kNormal * kNormal;
    const double widening =
        1 + (z2 + 1) / (4 * degrees) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * degrees * degrees);
    return std::sqrt(squares / n * (1 + 1 / n)) * widening;
  }

  const std::vector<MeasuredStep>& steps_;
  const CalibrationChoices& choices_;
  std::vector<char> may_move_;
  std::vector<double> spreads_;
  std::vector<CoordinateRange> limits_;
  Point here_;
  Residuals start_, residuals_;
  LinearProblem problem_;
  RobustFit fit_;
  std::vector<FittedPart> parts_;
};

double mean_error(const std::vector<FittedStep>& steps, double FittedStep::*predicted) {
  double sum = 0;
  for (const FittedStep& step : steps) sum += std::fabs(step.*predicted / step.measured - 1);
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

}  // namespace

double FittedConstant::told() const { return 1 - error * error / (prior * prior); }

double FittedConstant::error_of_value() const { return constant->is_sum ? error : error * after; }

std::string FittedConstant::error_text() const { return constant->text(error_of_value()); }

double Calibration::error_before() const { return mean_error(steps, &FittedStep::before); }
double Calibration::error_after() const { return mean_error(steps, &FittedStep::after); }
double Calibration::error_left_out() const { return mean_error(steps, &FittedStep::left_out); }

Scenario calibrated(Scenario scenario, const Calibration& calibration, const PartValues& stated) {
  Point point;
  point.moved.assign(tunable_constants().size(), 0.0);
  for (const FittedConstant& fitted : calibration.constants) {
    const auto k = static_cast<std::size_t>(fitted.constant - tunable_constants().data());
    point.moved[k] = fitted.moved;
  }
  for (const FittedPart& part : calibration.parts) point.parts[part.part] = part.after;
  return at(std::move(scenario), point, stated);
}

Result<Calibration> calibrate(const std::vector<MeasuredStep>& steps,
                              const CalibrationChoices& choices) {
  if (steps.empty()) {
    return Error{ErrorKind::kBadInput, "nothing was measured", "", "give at least one step"};
  }
  return Fitter(steps, choices).fit();
}

}  // namespace tpsim
