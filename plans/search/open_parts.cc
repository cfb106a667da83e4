#include "plans/search/open_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tpsim {
namespace {

constexpr std::size_t kMostCombinations = 64;

Result<std::vector<PartValues>> combinations(const PartLists& lists) {
  std::vector<PartValues> all = {{}};
  for (const auto& [part, values] : lists) {
    if (all.size() * values.size() > kMostCombinations) {
      return bad_input(
          fmt::format("the values of the software options form more than {} combinations",
                      kMostCombinations),
          std::string(option_of(part)), "give fewer values for this option or for others");
    }
    std::vector<PartValues> longer;
    for (const PartValues& one : all) {
      for (const std::int64_t value : values) {
        longer.push_back(one);
        longer.back()[part] = value;
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Returns the score of the first plan. A Pareto front has no scores: its first plan has the
// shortest step, and the step is returned. The score of a plan that was found only because nothing
// else fits is that of the slow end of its interval.
double first_score(const SearchResult& found) {
  if (found.plans.empty()) return std::numeric_limits<double>::max();
  const Prediction& first = found.plans.front().predicted;
  const double score = found.scores.empty() ? first.step.value() : found.scores.front();
  const bool is_needed = found.offload == OffloadSearch::kNeeded;
  return is_needed ? score * (first.step_high / first.step) : score;
}

}  // namespace

void add_counts(const SearchResult& from, SearchResult& to) {
  to.considered += from.considered;
  to.feasible += from.feasible;
  to.not_as_good += from.not_as_good;
  to.simulated += from.simulated;
  to.not_compared += from.not_compared;
  for (const auto& [reason, count] : from.pruned) to.pruned[reason] += count;
}

Scenario with_found_parts(Scenario scenario, const SearchResult& found) {
  if (found.tried.empty()) return scenario;
  scenario.stack = with_parts(std::move(scenario.stack), found.tried.front().parts);
  return scenario;
}

Result<SearchResult> over_open_parts(const Scenario& scenario,
                                     const std::function<void(double)>& progress,
                                     const SearchOfScenario& search) {
  if (scenario.stack.choices.parts.empty()) return search(scenario, progress);
  TPSIM_TRY(const std::vector<PartValues> all, combinations(scenario.stack.choices.parts));
  struct Scored {
    double score = 0;
    TriedParts tried;
  };
  std::vector<Scored> tried;
  SearchResult best;
  double visited = 0;
  for (const PartValues& parts : all) {
    const auto done = static_cast<double>(tried.size());
    const auto show = [&](double share) {
      if (progress) progress((done + share) / static_cast<double>(all.size()));
    };
    Scenario one = scenario;
    one.stack = with_parts(std::move(one.stack), parts);
    TPSIM_TRY(SearchResult found, search(one, show));
    visited += found.visited;
    const bool is_complete = found.is_complete();
    Scored scored{first_score(found), {parts, std::nullopt}};
    if (!found.plans.empty()) scored.tried.step = found.plans.front().predicted.step;
    if (!tried.empty()) {
      const bool is_better = scored.score < first_score(best);
      if (is_better) std::swap(found, best);
      add_counts(found, best);
    } else {
      best = std::move(found);
    }
    tried.push_back(std::move(scored));
    if (!is_complete) break;  // no time is left
  }
  best.visited = visited / static_cast<double>(all.size());
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  for (Scored& one : tried) best.tried.push_back(std::move(one.tried));
  return best;
}

}  // namespace tpsim
