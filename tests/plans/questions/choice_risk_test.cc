// How sure the choice of a plan is.
#include "plans/questions/choice_risk.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "core/base/normal.h"
#include "sim/step/order.h"

namespace tpsim {
namespace {

std::vector<PlannedRun> plans_with(const std::vector<double>& steps) {
  std::vector<PlannedRun> runs(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) runs[i].predicted.step = Seconds(steps[i]);
  return runs;
}

}  // namespace

TEST_CASE("the expected loss of one of two equal plans follows from the spread of pairs") {
  const ChoiceRisk risk = choice_risk(plans_with({3, 3}), {});
  // E[exp(max(0, d))] - 1 for a normal d with this spread.
  const double s = kPairSpread;
  const double loss = std::exp(s * s / 2) * normal_cdf(s) - 0.5;
  CHECK(risk.expected_loss == Approx(loss).epsilon(0.05));
  CHECK(risk.chance_fastest == Approx(0.5).margin(0.03));
  CHECK(risk.rival == 1);
  CHECK(risk.loss_if_run == 0);
  CHECK_FALSE(risk.input);
}

TEST_CASE("a choice among equal plans is less sure the more there are") {
  const ChoiceRisk two = choice_risk(plans_with({3, 3}), {});
  const ChoiceRisk ten = choice_risk(plans_with(std::vector<double>(10, 3)), {});
  CHECK(ten.chance_fastest < two.chance_fastest);
  CHECK(ten.expected_loss > 2 * two.expected_loss);
  CHECK(ten.loss_if_run < ten.expected_loss);
}

TEST_CASE("a plan that is far ahead is chosen without risk") {
  const ChoiceRisk risk = choice_risk(plans_with({1, 2, 3}), {});
  CHECK(risk.chance_fastest > 0.999);
  CHECK(risk.expected_loss < 1e-4);
}

TEST_CASE("probability and order agree with those of pairs") {
  const std::vector<PlannedRun> runs = plans_with({1, 1.05});
  CHECK(choice_risk(runs, {}).chance_fastest ==
        Approx(probability_faster(runs[0].predicted.step, runs[1].predicted.step)).margin(0.03));
}

TEST_CASE("an input that changes the order is named, one that shifts all plans alike is not") {
  const std::vector<PlannedRun> runs = plans_with({1, 1.5, 1.5});
  const double twice = std::log(2.0);
  Assumed assumed;
  assumed.shifts = {{OpenInput::kNetwork, {twice, twice, twice}}};
  const ChoiceRisk alike = choice_risk(runs, assumed);
  CHECK_FALSE(alike.input);
  CHECK(alike.expected_loss < 1e-3);
  assumed.shifts.push_back({OpenInput::kSoftware, {twice, 0, twice}});
  const ChoiceRisk risk = choice_risk(runs, assumed);
  CHECK(risk.input == OpenInput::kSoftware);
  // With the other software, which is as probable, the second plan takes 1.5 of 2 seconds.
  CHECK(risk.chance_fastest == Approx(0.5).margin(0.03));
  CHECK(risk.expected_loss == Approx(0.5 / 3).epsilon(0.1));
  CHECK(risk.loss_if_stated < 1e-3);
  CHECK(risk.rival == 1);
  CHECK(risk.loss_if_run < 1e-3);
}

}  // namespace tpsim
