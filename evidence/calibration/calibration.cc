#include "evidence/calibration/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "evidence/calibration/cross_validation.h"
#include "evidence/calibration/fit_steps.h"
#include "evidence/calibration/robust_fit.h"
#include "sim/step/usual_spreads.h"

namespace tpsim {
namespace {

constexpr int kMostDescents = 12;
constexpr std::size_t kMostParts = 2;
// Maximum numbers of candidate part changes to re-estimate with new slopes, and to refit.
constexpr std::size_t kMostGuessed = 6;
constexpr std::size_t kMostTried = 3;
constexpr std::size_t kLeastRowsForParts = 4;
// Required gain of a changed part, in units of 2 ln(likelihood). Choosing the best of about thirty
// candidates costs 2 ln 30 = 6.8; the rest is a margin.
constexpr double kPartCost = 12;
// Required gain of a value on which all rows that state the part agree. A negative gain suffices:
// prior odds of e to 1 prefer this value to the stack's own for the other rows.
constexpr double kStatedPartCost = -2;

class Fitter {
 public:
  Fitter(const std::vector<MeasuredStep>& steps, const CalibrationChoices& choices)
      : steps_(steps), choices_(choices), at_(steps, choices), spreads_(at_.spreads()) {}

  Result<Calibration> fit() {
    now_.here.moved.assign(spreads_.size(), 0.0);
    TPSIM_TRY(now_.residuals, at_.residuals_at(now_.here));
    start_ = now_.residuals;
    TPSIM_TRY_STATUS(descend());
    bool changed = choices_.stack && steps_.size() >= kLeastRowsForParts;
    while (changed && parts_.size() < kMostParts) {
      TPSIM_TRY(changed, changed_for_the_better());
    }
    if (choices_.stack) TPSIM_TRY_STATUS(suspect_precision());
    left_ = left_out_residuals(steps_, now_.problem, at_.limits(), start_);
    TPSIM_TRY_STATUS(go_no_further_than_helps());
    return result();
  }

 private:
  using Residuals = StepResiduals;
  using Point = FitPoint;

  void show(double share) const {
    if (choices_.progress) choices_.progress(share);
  }

  double badness_of(const Residuals& residuals, const std::vector<double>& moved) const {
    return badness(residuals, moved, spreads_, noise_of(residuals));
  }

  // Minimizes the badness by Gauss-Newton steps. A step is halved until it lowers the badness.
  Status descend() {
    for (int round = 0; round < kMostDescents; ++round) {
      TPSIM_TRY(now_.problem, at_.linear_at(now_.here, now_.residuals));
      const std::vector<double> wanted = fit_within(now_.problem, at_.limits());
      const double before = badness_of(now_.residuals, now_.here.moved);
      bool better = false;
      double furthest = 0;
      for (double length = 1; length > 0.1 && !better; length /= 2) {
        Point next = now_.here;
        furthest = 0;
        for (std::size_t k = 0; k < spreads_.size(); ++k) {
          const double step = length * (wanted[k] - now_.here.moved[k]);
          next.moved[k] =
              std::clamp(now_.here.moved[k] + step, at_.limits()[k].least, at_.limits()[k].most);
          furthest = std::max(furthest, std::fabs(step) / spreads_[k]);
        }
        TPSIM_TRY(Residuals there, at_.residuals_at(next));
        if (badness_of(there, next.moved) >= before) continue;
        better = true;
        now_.here = std::move(next);
        now_.residuals = std::move(there);
      }
      show(std::min(0.95, 0.15 * (round + 1)));
      constexpr double kNothing = 0.05;
      if (!better || furthest < kNothing) break;
    }
    TPSIM_TRY(now_.problem, at_.linear_at(now_.here, now_.residuals));
    now_.fit = robust_fit(now_.problem);
    return Ok{};
  }

  // Returns the stack's value of the part for the first row that does not state it, if any.
  std::optional<std::int64_t> unstated_value(const PartRow& row) const {
    const auto open = std::find_if(steps_.begin(), steps_.end(), [&](const MeasuredStep& s) {
      return !s.stated.contains(row.part);
    });
    if (open == steps_.end()) return std::nullopt;
    return row.get(open->scenario.stack);
  }

  // Returns the values that a part could have instead of the stack's own, if some row does not
  // state the part. Sets and ratios are skipped.
  std::vector<std::pair<StackPart, std::int64_t>> other_parts() const {
    std::vector<std::pair<StackPart, std::int64_t>> all;
    for (const PartRow& row : part_rows()) {
      const std::optional<std::int64_t> own = unstated_value(row);
      if (!own || now_.here.parts.contains(row.part)) continue;
      if (row.kind == FieldKind::kSet || row.kind == FieldKind::kWordOrRatio) continue;
      if (is_of_adapters(row.part)) continue;
      for (const FieldWord& word : row.words) {
        if (word.value != *own) all.emplace_back(row.part, word.value);
      }
    }
    return all;
  }

  double worth() const { return badness_of(now_.residuals, now_.here.moved); }

  struct Change {
    Point point;
    Residuals residuals;
    double cost = 0;   // required gain, see cost_of()
    double guess = 0;  // linear estimate of the badness after the change, plus the cost
  };

  // Returns the gain that a change of this part must exceed, in units of 2 ln(likelihood).
  double cost_of(StackPart part, std::int64_t value) const {
    bool is_stated = false;
    for (const MeasuredStep& step : steps_) {
      const auto stated = step.stated.find(part);
      if (stated == step.stated.end()) continue;
      if (stated->second != value) return kPartCost;
      is_stated = true;
    }
    return is_stated ? kStatedPartCost : kPartCost;
  }

  // Returns the badness at the optimum of the linearized problem.
  double solved(const LinearProblem& problem) const {
    const std::vector<double> unknowns = fit_within(problem, at_.limits());
    Residuals left;
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      left.push_back(residual_at(problem, r, unknowns));
    }
    return badness_of(left, unknowns);
  }

  // Returns up to kMostTried candidate changes of one part, best first.
  //
  // All candidates are first estimated with the slopes of the current point. The best kMostGuessed
  // are estimated again with slopes at the changed point. Candidates are skipped if they do not
  // change any step, or if a plan cannot be simulated with them.
  Result<std::vector<Change>> changes() const {
    std::vector<Change> all;
    for (const auto& [part, value] : other_parts()) {
      Change change{now_.here, {}};
      change.point.parts[part] = value;
      Result<Residuals> there = at_.residuals_at(change.point);
      if (!there.ok() || *there == now_.residuals) continue;
      change.residuals = *std::move(there);
      LinearProblem problem = now_.problem;
      for (std::size_t r = 0; r < steps_.size(); ++r) {
        problem.rows[r].residual = change.residuals[r];
      }
      change.cost = cost_of(part, value);
      change.guess = solved(problem) + change.cost;
      all.push_back(std::move(change));
    }
    keep_best(all, kMostGuessed);
    for (Change& change : all) {
      TPSIM_TRY(const LinearProblem problem, at_.linear_at(change.point, change.residuals));
      change.guess = solved(problem) + change.cost;
    }
    keep_best(all, kMostTried);
    return all;
  }

  // Sorts by cost, then by estimated badness. Values that rows state have the lowest cost.
  static void keep_best(std::vector<Change>& all, std::size_t most) {
    std::sort(all.begin(), all.end(), [](const Change& a, const Change& b) {
      return std::pair(a.cost, a.guess) < std::pair(b.cost, b.guess);
    });
    if (all.size() > most) all.resize(most);
  }

  // Refits all constants for each candidate change, and applies the change with the largest gain.
  // Returns whether a change had a positive gain and was applied.
  Result<bool> changed_for_the_better() {
    const Standing before = now_;
    const double worth_before = worth();
    Standing best = before;
    double gain = 0;
    TPSIM_TRY(std::vector<Change> all, changes());
    for (Change& change : all) {
      now_.here = std::move(change.point);
      now_.residuals = std::move(change.residuals);
      TPSIM_TRY_STATUS(descend());
      const double after = worth_before - change.cost - worth();
      if (after <= gain) continue;
      best = now_;
      gain = after;
    }
    now_ = gain > 0 ? best : before;
    if (gain <= 0) return false;
    for (const auto& [part, value] : now_.here.parts) {
      if (before.here.parts.contains(part)) continue;
      parts_.push_back({part, unstated_value(row_of(part)).value_or(value), value, gain});
    }
    return true;
  }

  // Sets the recipe of low precision that explains the rows clearly better, to first order.
  Status suspect_precision() {
    double least = worth() - kPartCost;
    for (const FieldWord& word : row_of(Setting::kPrecision).words) {
      Point point = now_.here;
      point.precision = static_cast<Precision>(word.value);
      const Result<Residuals> there = at_.residuals_at(point);
      if (!there.ok() || *there == now_.residuals) continue;
      TPSIM_TRY(const LinearProblem problem, at_.linear_at(point, *there));
      const double guess = solved(problem);
      if (guess >= least) continue;
      least = guess;
      suspected_precision_ = point.precision;
    }
    return Ok{};
  }

  // Shrinks the fitted changes if cross-validation shows that they predict left-out rows worse than
  // the uncalibrated constants. The shrinkage is the share of the changes that predicts left-out
  // rows best. The shrinkage prevents that a fit to few or contradicting rows worsens predictions.
  Status go_no_further_than_helps() {
    if (mean_error(left_) <= mean_error(start_)) return Ok{};
    Point still = now_.here;
    still.moved.assign(spreads_.size(), 0.0);
    TPSIM_TRY(const Residuals unmoved, at_.residuals_at(still));
    const auto on_the_way = [&](double share) {
      Residuals there;
      for (std::size_t r = 0; r < left_.size(); ++r) {
        there.push_back((1 - share) * unmoved[r] + share * left_[r]);
      }
      return there;
    };
    constexpr int kShares = 20;
    double least = mean_error(left_);
    for (int i = 0; i < kShares; ++i) {
      const double share = static_cast<double>(i) / kShares;
      const double error = mean_error(on_the_way(share));
      if (error >= least) continue;
      least = error;
      shrinkage_ = share;
    }
    left_ = on_the_way(shrinkage_);
    for (double& moved : now_.here.moved) moved *= shrinkage_;
    TPSIM_TRY(now_.residuals, at_.residuals_at(now_.here));
    return Ok{};
  }

  // Returns the spread that remains for the total time of a group of constants: the prior spread
  // `usual`, reduced by the rows' information. A row contributes the squared share of its step that
  // the group explains, over the squared noise.
  double group_spread(ConstantGroup group, double usual) const {
    const auto constants = tunable_constants();
    double information = 1 / (usual * usual);
    for (const LinearRow& row : now_.problem.rows) {
      double share = 0;
      for (std::size_t k = 0; k < spreads_.size(); ++k) {
        if (constants[k].group == group) share += std::fabs(row.slopes[k]) * scale_of(k);
      }
      information += std::pow(std::min(1.0, share) / now_.fit.noise, 2);
    }
    return 1 / std::sqrt(information);
  }

  // Returns the scale of coordinate k. A sum is fitted linearly: its scale is its value in the
  // first scenario. Other constants are fitted as logarithms: their scale is 1.
  double scale_of(std::size_t k) const {
    const TunableConstant& constant = tunable_constants()[k];
    return constant.is_sum() ? constant.value(steps_.front().scenario) : 1;
  }

  Result<Calibration> result() {
    Calibration c;
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      const double measured = steps_[r].measured.value();
      c.steps.push_back({steps_[r].id, measured, measured * std::exp(-start_[r]),
                         measured * std::exp(-now_.residuals[r]), measured * std::exp(-left_[r])});
    }
    const Scenario& first = steps_.front().scenario;
    const Scenario after = moved_to(first, now_.here, {});
    const auto constants = tunable_constants();
    for (std::size_t k = 0; k < constants.size(); ++k) {
      const bool is_owned =
          constants[k].owner == ConstantOwner::kStack ? choices_.stack : choices_.cluster;
      if (!is_owned) continue;
      c.constants.push_back({&constants[k], constants[k].value(first), constants[k].value(after),
                             now_.here.moved[k], now_.fit.errors[k], spreads_[k]});
    }
    c.parts = parts_;
    c.suspected_precision = suspected_precision_;
    c.shrinkage = shrinkage_;
    c.noise = now_.fit.noise;
    c.effective_parameters = now_.fit.effective_parameters;
    c.host_spread = group_spread(ConstantGroup::kHost, kHostSpread);
    c.network_spread = group_spread(ConstantGroup::kNetwork, kNetworkSpread);
    c.kernel_spread = group_spread(ConstantGroup::kKernels, kKernelSpread);
    // Few rows widen the spread up to that of an uncalibrated stack. It is never below the errors
    // of the rows themselves, left out if there are several layouts.
    const Residuals& seen = left_ == start_ ? now_.residuals : left_;
    c.spread = std::max(root_mean_square(seen),
                        std::min(spread_of(left_, now_.fit.effective_parameters),
                                 std::hypot(first.stack.residual_spread, kForeignSpread)));
    show(1);
    return c;
  }

  const std::vector<MeasuredStep>& steps_;
  const CalibrationChoices& choices_;
  FitSteps at_;
  const std::vector<double>& spreads_;
  struct Standing {
    Point here;
    Residuals residuals;
    LinearProblem problem;
    RobustFit fit;
  };
  Standing now_;
  Residuals start_;
  Residuals left_;        // cross-validation: each row under a fit to the other layouts
  double shrinkage_ = 1;  // share of the fitted change that is applied
  std::vector<FittedPart> parts_;
  std::optional<Precision> suspected_precision_;
};

double mean_error_of(const std::vector<FittedStep>& steps, double FittedStep::*predicted) {
  double sum = 0;
  for (const FittedStep& step : steps) sum += std::fabs(step.*predicted / step.measured - 1);
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

}  // namespace

double FittedConstant::information() const { return 1 - error * error / (prior * prior); }

double FittedConstant::error_of_value() const { return constant->is_sum() ? error : error * after; }

std::string FittedConstant::error_text() const { return constant->text(error_of_value()); }

double Calibration::error_before() const { return mean_error_of(steps, &FittedStep::before); }
double Calibration::error_after() const { return mean_error_of(steps, &FittedStep::after); }
double Calibration::error_left_out() const { return mean_error_of(steps, &FittedStep::left_out); }

double Calibration::bias() const {
  double sum = 0;
  for (const FittedStep& step : steps) sum += std::log(step.measured / step.after);
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

Scenario calibrated(Scenario scenario, const Calibration& calibration, const PartValues& stated) {
  FitPoint point;
  point.moved.assign(tunable_constants().size(), 0.0);
  for (const FittedConstant& fitted : calibration.constants) {
    const auto k = static_cast<std::size_t>(fitted.constant - tunable_constants().data());
    point.moved[k] = fitted.moved;
  }
  for (const FittedPart& part : calibration.parts) point.parts[part.part] = part.after;
  return moved_to(std::move(scenario), point, stated);
}

Result<Calibration> calibrate(const std::vector<MeasuredStep>& steps,
                              const CalibrationChoices& choices) {
  if (steps.empty()) {
    return Error{ErrorKind::kBadInput, "a measured step is missing", "", "give at least one"};
  }
  return Fitter(steps, choices).fit();
}

}  // namespace tpsim
