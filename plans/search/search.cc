#include "plans/search/search.h"

#include "plans/search/staged_search.h"
#include "plans/search/usual_batch.h"

namespace tpsim {

Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads) {
  return StagedSearch(scenario, space, top, threads).best(progress);
}

Result<std::optional<PlannedRun>> faster_batch(const Scenario& scenario, SearchSpace space,
                                               double tokens_per_s, int threads) {
  constexpr double kLeastGain = 1.05;
  std::optional<PlannedRun> other;
  const std::int64_t batch = divisible_batch(space.global_batch, space.gpus);
  if (batch == space.global_batch) return other;
  space.global_batch = batch;
  TPSIM_TRY(const SearchResult found, search(scenario, space, 1, {}, threads));
  if (!found.plans.empty() &&
      found.plans.front().predicted.tokens_per_s >= kLeastGain * tokens_per_s) {
    other = found.plans.front();
  }
  return other;
}

Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads) {
  return StagedSearch(scenario, space, 1, threads).front(progress);
}

}  // namespace tpsim
