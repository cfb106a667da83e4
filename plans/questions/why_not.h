// Compares the best plan with a plan of requested settings, term by term. If no such plan fits or
// is legal, finds the reason and the changes that help. Uses the same cost model as the search.
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

// Time of one term of the step in both plans. The differences of all terms sum to the difference of
// the steps.
struct TermDifference {
  std::string name;
  Seconds best, other;
  Seconds difference() const { return other - best; }
};

// Settings of a plan and parts of its software.
struct Choices {
  std::vector<SettingValue> settings;
  PartValues parts;
};
std::string to_string(const Choices& choices);  // "tp=8,shard_group=node"

// A change of the requested settings, or of all requested parts, with which a plan fits.
struct Fix {
  Choices given_up;
  Choices instead;  // values of the given-up settings and parts in `run`
  PlannedRun run;
};

struct WhyNot {
  Choices asked;
  PlannedRun best;                  // best plan of the whole space
  std::vector<TriedParts> tried;    // tried values of stack parts that are not stated, best first
  std::optional<PlannedRun> other;  // best plan with the requested settings, if one fits
  std::vector<TermDifference> waterfall;  // terms of `other` compared with `best`
  // The two steps differ too little to rank them (sim/step/order.h).
  bool ties = false;
  // If no requested plan fits: the plan with the lowest peak, and the memory per GPU that it needs.
  std::optional<PlannedRun> nearest_miss;
  // The deciding reason if no requested plan is legal (plans/questions/why_illegal.h).
  std::string illegal;
  // Set if no requested plan fits or is legal. `fixes`: the smallest sets of requested settings to
  // drop so that a plan fits, fastest plan first. `enough_gpus`: the first of 2, 4, 8, ... times
  // the requested GPUs on which a requested plan fits; 0 if the cluster has too few.
  std::vector<Fix> fixes;
  std::int64_t enough_gpus = 0;
};

// Returns the errors of search(), and kDoesNotFit if no plan fits even without the requested
// settings.
Result<WhyNot> why_not(const Scenario& scenario, const SearchSpace& space, const Choices& asked,
                       int threads = 1, const std::function<void(double)>& progress = {});

// Returns the differences of `other` from `best`, in the order of the terms.
std::vector<TermDifference> term_differences(const Prediction& best, const Prediction& other);

}  // namespace tpsim
