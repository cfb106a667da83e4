// Compares the best plan with another requested plan, term by term, and finds obstacles to the
// requested one. All answers use the model that ranks plans.
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

// A term of the step in both plans. The sum of all differences is the difference of the steps.
struct TermDifference {
  std::string name;
  Seconds best, other;
  Seconds difference() const { return other - best; }
};

// A change of the requested settings that makes a plan fit.
struct Fix {
  std::vector<SettingValue> given_up;
  std::vector<SettingValue> instead;  // the plan's values of the settings in given_up
  PlannedRun run;
};

struct WhyNot {
  std::vector<SettingValue> asked;
  PlannedRun best;                  // best plan of the whole space
  std::vector<TriedParts> tried;    // combinations of parts that the stack leaves open, best first
  std::optional<PlannedRun> other;  // best plan with the requested settings, if one fits
  std::vector<TermDifference> waterfall;  // terms of `other` compared with `best`
  bool ties = false;                      // see sim/step/order.h
  // Set if no requested plan fits: the plan with the lowest peak, and the memory per GPU that it
  // needs.
  std::optional<PlannedRun> nearest_miss;
  // The deciding reason if no requested plan is legal (plans/questions/why_illegal.h).
  std::string illegal;
  // Set if no requested plan fits or is legal. The smallest sets of settings to give up, best plan
  // first. The smallest number of GPUs, in whole nodes, on which a requested plan fits (0: none in
  // this cluster).
  std::vector<Fix> fixes;
  std::int64_t enough_gpus = 0;
};

// Returns the errors of search(), and kDoesNotFit if no plan of the whole space fits.
Result<WhyNot> why_not(const Scenario& scenario, const SearchSpace& space,
                       const std::vector<SettingValue>& asked, int threads = 1,
                       const std::function<void(double)>& progress = {});

// Returns the differences of `other` from `best`, in the order of the terms.
std::vector<TermDifference> term_differences(const Prediction& best, const Prediction& other);

}  // namespace tpsim
