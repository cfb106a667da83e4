#include "plans/search/merged_results.h"

#include <utility>

namespace tpsim {

void add_counts(const SearchResult& from, SearchResult& to) {
  to.considered += from.considered;
  to.feasible += from.feasible;
  to.not_as_good += from.not_as_good;
  to.simulated += from.simulated;
  to.elapsed += from.elapsed;
  for (const auto& [reason, count] : from.pruned) to.pruned[reason] += count;
}

void keep_nearest_miss(SearchResult& second, SearchResult& first) {
  const auto peak = [](const SearchResult& found) { return found.nearest_miss->predicted.peak; };
  const bool first_is_nearer =
      first.nearest_miss && (!second.nearest_miss || peak(first) <= peak(second));
  if (first_is_nearer) second.nearest_miss = std::move(first.nearest_miss);
}

SearchResult merged(SearchResult first, SearchResult second, std::size_t top) {
  add_counts(first, second);
  keep_nearest_miss(second, first);
  std::vector<PlannedRun> plans;
  std::vector<double> scores;
  std::size_t i = 0, k = 0;
  while (plans.size() < top && (i < first.plans.size() || k < second.plans.size())) {
    const bool takes_first =
        k == second.plans.size() || (i < first.plans.size() && first.scores[i] <= second.scores[k]);
    SearchResult& from = takes_first ? first : second;
    std::size_t& at = takes_first ? i : k;
    plans.push_back(std::move(from.plans[at]));
    scores.push_back(from.scores[at++]);
  }
  second.plans = std::move(plans);
  second.scores = std::move(scores);
  return second;
}

}  // namespace tpsim
