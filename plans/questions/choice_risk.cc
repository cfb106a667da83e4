#include "plans/questions/choice_risk.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "core/base/check.h"
#include "sim/step/order.h"

namespace tpsim {
namespace {

using Logs = std::vector<double>;  // log(step) by plan

// Standard normal numbers, the same with every standard library.
class Normals {
 public:
  double next() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  std::size_t index(std::size_t count) {
    return std::min(count - 1, static_cast<std::size_t>(uniform() * static_cast<double>(count)));
  }

 private:
  // In (0, 1].
  double uniform() { return (static_cast<double>(random_() >> 11U) + 1) * 0x1p-53; }

  std::mt19937_64 random_{1};
};

struct Input {
  OpenInput input{};
  std::vector<const OpenShift*> values = {nullptr};  // null: as assumed
  std::vector<std::size_t> choices = {};  // best plan with each value, other inputs as assumed
  double loss = 0;                        // summed over draws, if the input were stated
};

std::size_t best_of(const Logs& steps) {
  return static_cast<std::size_t>(std::min_element(steps.begin(), steps.end()) - steps.begin());
}

void shift(Logs& steps, const OpenShift* by) {
  if (by == nullptr) return;
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] += by->of_plans[i];
}

std::vector<Input> inputs_of(const Assumed& assumed, const Logs& predicted) {
  std::vector<Input> inputs;
  for (const OpenShift& one : assumed.shifts) {
    const auto known = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const Input& i) { return i.input == one.input; });
    Input& input = known != inputs.end() ? *known : inputs.emplace_back(Input{one.input});
    input.values.push_back(&one);
  }
  for (Input& input : inputs) {
    for (const OpenShift* value : input.values) {
      Logs steps = predicted;
      shift(steps, value);
      input.choices.push_back(best_of(steps));
    }
  }
  return inputs;
}

}  // namespace

ChoiceRisk choice_risk(std::span<const PlannedRun> ranked, const Assumed& assumed) {
  TPSIM_CHECK(ranked.size() > 1, "a choice has at least two plans");
  constexpr int kDraws = 4000;  // the mean of a loss of 5 % is known within 0.1 %
  const double own = kPairSpread / std::numbers::sqrt2;
  Logs predicted;
  for (const PlannedRun& run : ranked) predicted.push_back(std::log(run.predicted.step.value()));
  std::vector<Input> inputs = inputs_of(assumed, predicted);
  std::vector<double> loss_with(ranked.size(), 0);  // if the first plan and this one were run
  ChoiceRisk risk;
  Normals normals;
  std::vector<std::size_t> drawn(inputs.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    Logs steps = predicted;
    for (double& step : steps) step += own * normals.next();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      drawn[k] = normals.index(inputs[k].values.size());
      shift(steps, inputs[k].values[drawn[k]]);
    }
    const std::size_t fastest = best_of(steps);
    const auto loss = [&](double step) { return std::exp(step - steps[fastest]) - 1; };
    if (fastest == 0) risk.chance_fastest += 1;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      loss_with[i] += loss(std::min(steps[0], steps[i]));
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      inputs[k].loss += loss(steps[inputs[k].choices[drawn[k]]]);
    }
  }
  risk.chance_fastest /= kDraws;
  risk.expected_loss = loss_with[0] / kDraws;
  const auto rival = std::min_element(loss_with.begin() + 1, loss_with.end());
  risk.rival = static_cast<std::size_t>(rival - loss_with.begin());
  risk.loss_if_run = *rival / kDraws;
  risk.loss_if_stated = risk.expected_loss;
  for (const Input& one : inputs) {
    const bool changes = std::any_of(one.choices.begin(), one.choices.end(),
                                     [](std::size_t choice) { return choice != 0; });
    if (!changes || one.loss / kDraws >= risk.loss_if_stated) continue;
    risk.input = one.input;
    risk.loss_if_stated = one.loss / kDraws;
  }
  return risk;
}

}  // namespace tpsim
