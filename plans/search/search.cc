#include "plans/search/search.h"

#include <algorithm>
#include <functional>

#include "plans/search/merged_results.h"
#include "plans/search/open_parts.h"
#include "plans/search/search_pass.h"
#include "plans/search/search_work.h"

namespace tpsim {
namespace {

using Progress = std::function<void(double)>;

SearchSpace offloaded(SearchSpace space) {
  space.asked[Setting::kOffload] = {static_cast<std::int64_t>(Offload::kOptimizer)};
  return space;
}

bool lacked_memory(const SearchResult& found) { return found.pruned.count(kOverMemory) > 0; }

// If some plans exceed memory, a second pass tries plans with an offloaded optimizer. The second
// pass is skipped if the objective is memory and a plan fits without offload.
Result<SearchResult> best_plans(const Scenario& scenario, const SearchSpace& space, int top,
                                const Progress& progress, int threads) {
  PricerPool pricers(scenario);
  SearchPass first(pricers, space, top);
  TPSIM_TRY(SearchResult found, first.best(progress, threads));
  if (!may_offload(scenario, space) || !lacked_memory(found)) return found;
  found.offload_left_out = space.objective == Objective::kMemory && !found.plans.empty();
  if (found.offload_left_out) return found;
  const auto wanted = static_cast<std::size_t>(std::max(1, top));
  const double cap = found.plans.size() < wanted ? kNoCap : found.scores.back();
  const SearchSpace other = offloaded(space);
  // Offloading the optimizer never shortens a step, so the second pass skips groups that are too
  // slow without offload.
  const SlowGroups slow = first.groups_beyond(cap);
  pricers.take_back_all();
  TPSIM_TRY(SearchResult second,
            SearchPass(pricers, other, top, cap, &slow).best(progress, threads));
  return merged(std::move(found), std::move(second), wanted);
}

// A front contains plans with offload only if no plan fits without offload.
Result<SearchResult> front_of(const Scenario& scenario, const SearchSpace& space,
                              const Progress& progress, int threads) {
  PricerPool pricers(scenario);
  TPSIM_TRY(SearchResult found, SearchPass(pricers, space, 1).front(progress, threads));
  if (!may_offload(scenario, space)) return found;
  found.offload_left_out = !found.plans.empty() && lacked_memory(found);
  if (!found.plans.empty()) return found;
  const SearchSpace other = offloaded(space);
  pricers.take_back_all();
  TPSIM_TRY(SearchResult second, SearchPass(pricers, other, 1).front(progress, threads));
  add_counts(found, second);
  keep_nearest_miss(second, found);
  return second;
}

}  // namespace

Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads) {
  TPSIM_TRY_STATUS(check_space(scenario, space, top));
  return over_open_parts(scenario, progress, [&](const Scenario& one, const Progress& hears) {
    return best_plans(one, space, top, hears, threads);
  });
}

Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads) {
  TPSIM_TRY_STATUS(check_space(scenario, space, 1));
  return over_open_parts(scenario, progress, [&](const Scenario& one, const Progress& hears) {
    return front_of(one, space, hears, threads);
  });
}

}  // namespace tpsim
