// How sure the choice of a plan is: the best of many plans under an uncertain model may not be the
// fastest in reality. Computed over the plans of a ranking.
//
// The log error of a step has a part that all plans share, which does not change their order, and
// separate parts: an own part of each plan, known from measured pairs (kPairSpread), and inputs
// that nobody stated, whose alternatives shift each plan differently (Assumed::shifts).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/plan/report.h"
#include "plans/questions/open_inputs.h"

namespace tpsim {

struct ChoiceRisk {
  double chance_fastest = 0;  // probability that the first plan is the fastest
  // Mean of its step / step of the fastest plan - 1.
  double expected_loss = 0;
  // The plan whose run beside the first one reduces the expected loss most, and the loss if the
  // faster of the two is then chosen.
  std::size_t rival = 1;
  double loss_if_run = 0;
  // The input whose statement reduces the expected loss most, and the loss if the plans are ranked
  // again with it. Empty if no unstated input changes the order.
  std::optional<OpenInput> input = {};
  double loss_if_stated = 0;
};

// `ranked`: at least two plans, the chosen one first. `assumed`: result of OpenInputs::widen() for
// these plans. Equal inputs have equal results.
ChoiceRisk choice_risk(std::span<const PlannedRun> ranked, const Assumed& assumed);

}  // namespace tpsim
