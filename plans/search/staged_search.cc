#include "plans/search/staged_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plans/search/allowed_values.h"
#include "plans/search/open_parts.h"
#include "plans/search/search.h"
#include "plans/search/search_pass.h"
#include "plans/search/search_work.h"
#include "plans/search/usual_batch.h"

namespace tpsim {
namespace {

SearchSpace offloaded(SearchSpace space) {
  space.asked[Setting::kOffload] = {static_cast<std::int64_t>(Offload::kOptimizer)};
  return space;
}

bool lacked_memory(const SearchResult& found) { return found.pruned.count(kOverMemory) > 0; }

// Sets second.nearest_miss to the nearest miss with the lower peak. For two searches without plans.
void keep_nearest_miss(SearchResult& second, SearchResult& first) {
  const auto peak = [](const SearchResult& found) { return found.nearest_miss->predicted.peak; };
  const bool first_is_nearer =
      first.nearest_miss && (!second.nearest_miss || peak(first) <= peak(second));
  if (first_is_nearer) second.nearest_miss = std::move(first.nearest_miss);
}

// Sets second.plans to the `top` best plans of both searches, each plan once. At equal scores,
// plans of the first search come first. If layouts are ranked, keeps the better plan of each.
void merge_plans(SearchResult first, SearchResult& second, std::size_t top, Grouping group) {
  std::vector<PlannedRun> plans;
  std::vector<double> scores;
  std::size_t i = 0, k = 0;
  while (plans.size() < top && (i < first.plans.size() || k < second.plans.size())) {
    const bool takes_first =
        k == second.plans.size() || (i < first.plans.size() && first.scores[i] <= second.scores[k]);
    SearchResult& from = takes_first ? first : second;
    const std::size_t at = takes_first ? i++ : k++;
    const Plan& plan = from.plans[at].plan;
    const bool is_known = std::any_of(plans.begin(), plans.end(), [&](const PlannedRun& run) {
      return group == Grouping::kLayout ? run.plan.degrees == plan.degrees : run.plan == plan;
    });
    if (is_known) continue;
    plans.push_back(std::move(from.plans[at]));
    scores.push_back(from.scores[at]);
  }
  second.plans = std::move(plans);
  second.scores = std::move(scores);
}

// Returns the result of both searches, without and with offload.
SearchResult merged(SearchResult first, SearchResult second, std::size_t top, Grouping group) {
  add_counts(first, second);
  second.visited = (first.visited + second.visited) / 2;
  keep_nearest_miss(second, first);
  merge_plans(std::move(first), second, top, group);
  return second;
}

}  // namespace

class StagedSearch::Stages {
 public:
  // `cap`: plans with a higher score are skipped; with a cap, best() does not look for a nearest
  // miss.
  Stages(const Scenario& scenario, const SearchSpace& space, int top, int threads,
         double cap = kNoCap)
      : scenario_(scenario),
        space_(space),
        offloaded_space_(offloaded(space)),
        top_(top),
        threads_(threads),
        cap_(cap) {}

  Result<SearchResult> best(const Progress& progress) {
    TPSIM_TRY_STATUS(check_space(scenario_, space_, top_));
    if (scenario_.stack.choices.parts.empty()) return best_plans(progress);
    Result<SearchResult> found =
        over_open_parts(scenario_, progress, [&](const Scenario& one, const Progress& hears) {
          return Stages(one, space_, top_, threads_, cap_).best_plans(hears);
        });
    if (found.ok()) scenario_ = with_found_parts(scenario_, *found);
    has_parts_ = found.ok();
    return found;
  }

  // A front contains plans with offload only if no plan fits without offload.
  Result<SearchResult> front(const Progress& progress) {
    TPSIM_TRY_STATUS(check_space(scenario_, space_, 1));
    if (!scenario_.stack.choices.parts.empty() && !has_parts_) {
      return over_open_parts(scenario_, progress, [&](const Scenario& one, const Progress& hears) {
        return Stages(one, space_, top_, threads_).front_plans(hears);
      });
    }
    return front_plans(progress);
  }

  Result<SearchResult> best_of_tp(std::int64_t tp, int top, const Progress& progress) {
    return shown().best_of_tp(tp, top, progress, threads_);
  }

  std::vector<std::int64_t> tp_degrees() { return shown().tp_degrees(); }

  Result<std::optional<PlannedRun>> faster_batch(double tokens_per_s) {
    constexpr double kLeastGain = 1.05;
    const std::int64_t batch = divisible_batch(space_.global_batch, space_.gpus);
    if (batch == space_.global_batch) return std::optional<PlannedRun>();
    return best_with(space_.gpus, batch, kLeastGain * tokens_per_s);
  }

  Result<std::optional<PlannedRun>> best_with(std::int64_t gpus, std::int64_t global_batch,
                                              double least) {
    SearchSpace space = space_;
    space.gpus = gpus;
    space.global_batch = global_batch;
    const auto tokens = static_cast<double>(global_batch * scenario_.model.seq);
    Stages other(scenario_, space, 1, threads_, least > 0 ? tokens / least : kNoCap);
    if (!pricers_) pricers_ = std::make_shared<PricerPool>(scenario_);
    pricers_->take_back_all();
    other.pricers_ = pricers_;
    TPSIM_TRY(SearchResult found, other.best({}));
    std::optional<PlannedRun> best;
    if (!found.plans.empty() && found.plans.front().predicted.tokens_per_s >= least) {
      best = std::move(found.plans.front());
    }
    return best;
  }

 private:
  SearchPass& first() {
    if (!pricers_) pricers_ = std::make_shared<PricerPool>(scenario_);
    if (!first_) first_.emplace(*pricers_, space_, top_, cap_);
    return *first_;
  }

  // Returns the pass whose plans fit.
  SearchPass& shown() { return !fits_without_offload_ && second_ ? *second_ : first(); }

  // `surely`: see SearchPass.
  SearchPass& second(double cap = kNoCap, bool surely = false) {
    if (second_) return *second_;
    // Offloading the optimizer never shortens a step, so the second pass skips groups that are too
    // slow without offload.
    slow_ = first_->groups_beyond(cap);
    pricers_->take_back_all();
    second_.emplace(*pricers_, offloaded_space_, top_, cap, &slow_, surely);
    return *second_;
  }

  // Returns a score that at least `top` plans reach, or kNoCap: found in a small part of the space,
  // so that the search of the whole space rejects most groups by their first bound. Keeps the
  // result in `likely` if the search has a limit of time.
  double reached_score(SearchResult& likely) {
    if (space_.objective == Objective::kMemory) return kNoCap;
    if (!pricers_) pricers_ = std::make_shared<PricerPool>(scenario_);
    double reached = kNoCap;
    for (const LikelyPart kind :
         {LikelyPart::kFewLayouts, LikelyPart::kOneSequence, LikelyPart::kFourSequences}) {
      SearchSpace part = likely_part(scenario_, space_, kind);
      part.wants_nearest_miss = false;
      SearchPass pass(*pricers_, part, top_, cap_);
      if (space_.until) {
        Result<SearchResult> found = pass.best({}, threads_, reached);
        if (!found.ok() || found->visited == 0) continue;
        merge_plans(std::move(likely), *found, wanted(), space_.group);
        likely = std::move(*found);
        if (likely.scores.size() == wanted()) reached = likely.scores.back();
      } else {
        reached = std::min(reached, pass.reached_score(threads_, reached));
      }
      pricers_->take_back_all();
    }
    return reached;
  }

  std::size_t wanted() const { return static_cast<std::size_t>(std::max(1, top_)); }

  // If some plans exceed memory, a second pass tries plans with an offloaded optimizer. If a plan
  // fits without offload, the pass is skipped for the objective memory, and otherwise keeps plans
  // whose whole interval is better than the best plan so far.
  Result<SearchResult> best_plans(const Progress& progress) {
    // Share of the first pass in the progress, if a second one may follow.
    const double share = may_offload(scenario_, space_) ? 0.6 : 1;
    const auto part = [&](double begin, double end) -> Progress {
      if (!progress) return {};
      return [=](double done) { progress(begin + done * (end - begin)); };
    };
    SearchResult likely;
    const double reached = reached_score(likely);
    TPSIM_TRY(SearchResult found, first().best(part(0, share), threads_, reached));
    if (found.visited == 0) {
      likely.visited = 0;
      return likely;
    }
    if (!found.is_complete()) {
      merge_plans(std::move(likely), found, wanted(), space_.group);
      return found;
    }
    fits_without_offload_ = !found.plans.empty();
    if (!may_offload(scenario_, space_) || !lacked_memory(found)) return found;
    if (fits_without_offload_ && space_.objective == Objective::kMemory) {
      found.offload = OffloadSearch::kLeftOut;
      return found;
    }
    const double cap = fits_without_offload_ ? found.scores.front() : cap_;
    TPSIM_TRY(SearchResult second_found,
              second(cap, fits_without_offload_).best(part(share, 1), threads_));
    second_found.offload = fits_without_offload_ ? OffloadSearch::kSurely : OffloadSearch::kNeeded;
    return merged(std::move(found), std::move(second_found), wanted(), space_.group);
  }

  Result<SearchResult> front_plans(const Progress& progress) {
    TPSIM_TRY(SearchResult found, first().front(progress, threads_));
    fits_without_offload_ = !found.plans.empty();
    if (!may_offload(scenario_, space_)) return found;
    if (!found.plans.empty()) {
      if (lacked_memory(found)) found.offload = OffloadSearch::kLeftOut;
      return found;
    }
    TPSIM_TRY(SearchResult other, second().front(progress, threads_));
    other.offload = OffloadSearch::kNeeded;
    add_counts(found, other);
    keep_nearest_miss(other, found);
    return other;
  }

  Scenario scenario_;
  SearchSpace space_, offloaded_space_;
  int top_, threads_;
  double cap_;
  std::shared_ptr<PricerPool> pricers_;
  std::optional<SearchPass> first_, second_;
  SlowGroups slow_;                   // of the second pass
  bool fits_without_offload_ = true;  // until a pass finds no plan
  bool has_parts_ = false;            // best() chose the values of open parts
};

StagedSearch::StagedSearch(const Scenario& scenario, const SearchSpace& space, int top, int threads)
    : stages_(std::make_unique<Stages>(scenario, space, top, threads)) {}
StagedSearch::~StagedSearch() = default;
StagedSearch::StagedSearch(StagedSearch&&) noexcept = default;
StagedSearch& StagedSearch::operator=(StagedSearch&&) noexcept = default;

Result<SearchResult> StagedSearch::best(const Progress& progress) {
  return stages_->best(progress);
}
Result<SearchResult> StagedSearch::front(const Progress& progress) {
  return stages_->front(progress);
}
std::vector<std::int64_t> StagedSearch::tp_degrees() const { return stages_->tp_degrees(); }
Result<SearchResult> StagedSearch::best_of_tp(std::int64_t tp, int top, const Progress& progress) {
  return stages_->best_of_tp(tp, top, progress);
}
Result<std::optional<PlannedRun>> StagedSearch::faster_batch(double tokens_per_s) {
  return stages_->faster_batch(tokens_per_s);
}

Result<std::optional<PlannedRun>> StagedSearch::best_with(std::int64_t gpus,
                                                          std::int64_t global_batch, double least) {
  return stages_->best_with(gpus, global_batch, least);
}

}  // namespace tpsim
