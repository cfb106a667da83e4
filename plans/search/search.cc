#include "plans/search/search.h"

#include "plans/search/staged_search.h"

namespace tpsim {

Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads) {
  return StagedSearch(scenario, space, top, threads).best(progress);
}

Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads) {
  return StagedSearch(scenario, space, 1, threads).front(progress);
}

}  // namespace tpsim
