// A search in stages that share their bounds: the best plans, then the Pareto front, then the best
// plans of each tensor parallel degree.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_result.h"
#include "plans/search/search_space.h"

namespace tpsim {

class StagedSearch {
 public:
  using Progress = std::function<void(double)>;  // receives the completed share of a stage

  // The results do not depend on the number of threads.
  StagedSearch(const Scenario& scenario, const SearchSpace& space, int top, int threads = 1);
  ~StagedSearch();
  StagedSearch(StagedSearch&&) noexcept;
  StagedSearch& operator=(StagedSearch&&) noexcept;

  // Results and errors of search() and pareto_front() in plans/search/search.h. front() reuses the
  // layers of best(). With open parts of the stack, front() and best_of_tp() use the values that
  // best() chose.
  Result<SearchResult> best(const Progress& progress);
  Result<SearchResult> front(const Progress& progress);
  // Returns the tensor parallel degrees of plans that may fit, ascending. Call after front().
  std::vector<std::int64_t> tp_degrees() const;
  // Returns the `top` best plans with this tensor parallel degree, without a nearest miss. Plans
  // with offload are searched only if no plan fits without offload.
  Result<SearchResult> best_of_tp(std::int64_t tp, int top, const Progress& progress);
  // Returns the best plan by time of the space with divisible_batch(), if its tokens/s exceed those
  // of the best plan, `tokens_per_s`, by at least 5 %. Fast after best().
  Result<std::optional<PlannedRun>> faster_batch(double tokens_per_s);
  // Returns the best plan by time of the space with this number of GPUs and this batch, if its
  // tokens/s are at least `least`. Fast if few plans are, and after other searches.
  Result<std::optional<PlannedRun>> best_with(std::int64_t gpus, std::int64_t global_batch,
                                              double least);

 private:
  class Stages;
  std::unique_ptr<Stages> stages_;
};

}  // namespace tpsim
