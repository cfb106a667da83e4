// Why the best plan is not another one: the counterfactual, term by term, and what stands against
// it. Every answer is searched for with the same model that ranks plans.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// A term of the step in both plans. The differences add up to the difference of the steps.
struct TermDifference {
  std::string name;
  Seconds best, other;
  Seconds difference() const { return other - best; }
};

// What to give up of what was asked for so that a plan fits.
struct Fix {
  std::vector<SettingValue> given_up;
  std::vector<SettingValue> instead;  // what the plan has in their place
  PlannedRun run;
};

struct WhyNot {
  std::vector<SettingValue> asked;
  PlannedRun best;                        // of the whole space
  std::vector<TriedParts> tried;          // parts that the stack leaves open, the best first
  std::optional<PlannedRun> other;        // the best plan with what was asked for, if one fits
  std::vector<TermDifference> waterfall;  // other against best
  bool ties = false;                      // see sim/step/order.h
  // Nothing with what was asked for fits: the plan that misses by least, and the memory of one GPU
  // with which it would fit.
  std::optional<PlannedRun> nearest_miss;
  // Nothing is even legal: what decides it (plans/questions/why_illegal.h).
  std::string illegal;
  // Where nothing fits or is legal: the fewest settings to give up, best plan first; and the fewest
  // GPUs, in whole nodes, on which what was asked for fits (0: not on this cluster).
  std::vector<Fix> fixes;
  std::int64_t enough_gpus = 0;
};

// Fails as search() does, and with kDoesNotFit when nothing fits in the whole space.
Result<WhyNot> why_not(const Scenario& scenario, const SearchSpace& space,
                       const std::vector<SettingValue>& asked, int threads = 1,
                       const std::function<void(double)>& progress = {});

// `other` against `best`, in the order of the terms.
std::vector<TermDifference> term_differences(const Prediction& best, const Prediction& other);

}  // namespace tpsim
