#include "app/scenario/untried_parts.h"

#include <algorithm>
#include <optional>

#include "app/scenario/available_part.h"
#include "core/software/part_rules.h"
#include "frameworks/launch/launch_stack.h"
#include "plans/search/allowed_values.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

constexpr double kLeastGain = 0.01;

}  // namespace

std::vector<TriedParts> untried_parts(const NamedScenario& named, const PlannedRun& best,
                                      double oom_risk) {
  const Scenario& scenario = named.scenario;
  std::vector<TriedParts> gains;
  if (!launch_stack_of(scenario.stack.launcher, scenario.stack.name)) return gains;
  const Seconds enough = (1 - kLeastGain) * best.predicted.step;
  for (const PartWord& one : part_words()) {
    const std::optional<std::int64_t> value = open_value(named, one);
    if (!value) continue;
    Scenario other = scenario;
    other.stack = with_parts(scenario.stack, {{one.part, *value}});
    if (broken_file_rule(other.stack.launcher, other.stack, other.model, best.plan,
                         named.profile) != nullptr) {
      continue;
    }
    const Result<Prediction> predicted = simulate(other, best.plan);
    if (!predicted.ok() || predicted->step > enough) continue;
    if (fits_in_memory(*predicted, oom_risk)) {
      gains.push_back({{{one.part, *value}}, predicted->step});
    }
  }
  std::sort(gains.begin(), gains.end(),
            [](const TriedParts& a, const TriedParts& b) { return *a.step < *b.step; });
  return gains;
}

PartValues faster_parts(NamedScenario named, const SearchSpace& space) {
  PartValues found;
  if (named.is_saved) return found;
  SearchSpace few = likely_part(named.scenario, space, LikelyPart::kFewLayouts);
  few.wants_nearest_miss = false;
  few.objective = Objective::kTime;
  // The likely plan may differ with each part.
  while (!held_parts(named).empty()) {
    const Result<SearchResult> likely = search(named.scenario, few, 1, {});
    if (!likely.ok() || likely->plans.empty()) break;
    const std::vector<TriedParts> gains =
        untried_parts(named, likely->plans.front(), space.oom_risk);
    if (gains.empty()) break;
    const auto& [part, value] = *gains.front().parts.begin();
    found[part] = named.parts[part] = value;
    named.scenario.stack = with_parts(std::move(named.scenario.stack), {{part, value}});
  }
  return found;
}

Scenario with_faster_parts(const NamedScenario& named, const SearchSpace& space) {
  Scenario scenario = named.scenario;
  for (const auto& [part, value] : faster_parts(named, space)) {
    scenario.stack.choices.parts[part] = {value};
  }
  return scenario;
}

}  // namespace tpsim::app
