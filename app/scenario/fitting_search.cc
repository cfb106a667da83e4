#include "app/scenario/fitting_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "app/scenario/assumed_stack.h"
#include "app/scenario/available_part.h"
#include "app/scenario/untried_parts.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/measured_stack.h"

namespace tpsim::app {
namespace {

bool has_plans(const Result<SearchResult>& found) { return found.ok() && !found->plans.empty(); }

// Software to search with. `searched` is the scenario of `named`, perhaps with open parts.
struct Candidate {
  NamedScenario named;
  Scenario searched;
};

// Opens the parts that save memory; nullopt if the request states all of them.
std::optional<Candidate> with_open_savers(const NamedScenario& named) {
  PartLists opened;
  for (const PartWord& one : part_words()) {
    const std::optional<std::int64_t> value = open_value(named, one);
    if (!value || !one.saves_memory) continue;
    std::vector<std::int64_t>& values = opened[one.part];
    if (values.empty()) values = {row_of(one.part).get(named.scenario.stack)};
    values.push_back(*value);
  }
  if (opened.empty()) return std::nullopt;
  Candidate candidate{named, named.scenario};
  candidate.searched.stack.choices.parts.merge(opened);
  return candidate;
}

// Replaces the stack, and keeps stated parts. Nullopt if the stack does not support one of them.
std::optional<NamedScenario> with_stack(NamedScenario named, StackSpec stack) {
  for (const auto& [part, value] : named.parts) {
    const auto list = stack.choices.parts.find(part);
    const bool is_own = row_of(part).get(stack) == value;
    const bool is_listed = list == stack.choices.parts.end() ||
                           std::count(list->second.begin(), list->second.end(), value) > 0;
    if (!is_own && !is_listed) return std::nullopt;
  }
  named.stack = stack.name;
  Scenario& scenario = named.scenario;
  scenario.stack = completed_stack(with_parts(std::move(stack), named.parts), {}, scenario.profile,
                                   scenario.cluster);
  return named;
}

// Returns the value that search results are compared by; lower is better.
double score_of(const SearchResult& found) {
  return found.scores.empty() ? found.plans.front().predicted.step.value() : found.scores.front();
}

// Returns the scenarios with the other usual stacks.
std::vector<NamedScenario> with_other_stacks(const NamedScenario& named) {
  std::vector<NamedScenario> others;
  const Result<Catalogue> catalogue = Catalogue::open();
  if (!catalogue.ok()) return others;
  Result<std::vector<StackSpec>> stacks = assumable_stacks(*catalogue, named.scenario);
  if (!stacks.ok()) return others;
  for (StackSpec& stack : *stacks) {
    if (stack.name == named.stack) continue;
    if (auto other = with_stack(named, std::move(stack))) others.push_back(std::move(*other));
  }
  return others;
}

struct Fitting {
  NamedScenario named;
  SearchResult found;
};

// One progress for several searches, of which any may be the last.
class SharedProgress {
 public:
  explicit SharedProgress(const Progress& progress) : progress_(progress) {}

  // Returns the progress of the next search, which takes this share of the rest.
  Progress next(double share) {
    if (!progress_) return {};
    const double begin = end_, length = share * (1 - begin);
    end_ += length;
    return [this, begin, length](double done) { progress_(begin + length * done); };
  }

 private:
  const Progress& progress_;
  double end_ = 0;
};

// Returns the share of the first search in the progress. The other searches are likely if weights,
// gradients and optimizer fill much of the memory although all GPUs shard them.
double first_share(const Scenario& scenario, std::int64_t gpus) {
  constexpr double kStateBytes = 16, kMuch = 1.0 / 3;
  const double states = kStateBytes * static_cast<double>(parameter_count(scenario.model)) /
                        static_cast<double>(std::max<std::int64_t>(1, gpus));
  return states > kMuch * scenario.profile.device.memory.value() ? 0.4 : 1;
}

// Searches with all candidates. Returns the one with the best plan, nullopt if no plan fits.
// `later` is the number of candidates that follow if no plan fits.
std::optional<Fitting> best_fitting(const std::vector<Candidate>& all, std::size_t later,
                                    SharedProgress& progress, const SearchOf& search) {
  std::optional<Fitting> best;
  const Candidate* best_one = nullptr;
  for (const Candidate& one : all) {
    // The best candidate may be searched again.
    const auto left = static_cast<double>(&all.back() - &one + 1) + static_cast<double>(later);
    Result<SearchResult> found =
        search(one.searched, progress.next(1 / (left + (all.size() > 1 ? 1 : 0))));
    if (!has_plans(found) || (best && score_of(*found) >= score_of(best->found))) continue;
    best = Fitting{one.named, std::move(*found)};
    best_one = &one;
  }
  if (best && best_one != &all.back()) {
    Result<SearchResult> again = search(best_one->searched, progress.next(1));
    if (again.ok()) best->found = std::move(*again);
  }
  return best;
}

// Tries other software, the least change first.
std::optional<Fitting> other_software(const NamedScenario& named, SharedProgress& progress,
                                      const SearchOf& search) {
  std::vector<Candidate> own, others, open_others;
  if (auto open = with_open_savers(named)) own.push_back(std::move(*open));
  if (named.stack_is_default && !named.is_saved) {
    for (const NamedScenario& other : with_other_stacks(named)) {
      others.push_back({other, other.scenario});
      if (auto open = with_open_savers(other)) open_others.push_back(std::move(*open));
    }
  }
  const std::size_t last = open_others.size();
  if (auto fits = best_fitting(own, others.size() + last, progress, search)) return fits;
  if (auto fits = best_fitting(others, last, progress, search)) return fits;
  return best_fitting(open_others, 0, progress, search);
}

}  // namespace

Result<SearchResult> search_until_fit(NamedScenario& named, const SearchSpace& space,
                                      const Progress& progress, const SearchOf& search) {
  SharedProgress shared(progress);
  const Scenario searched = with_faster_parts(named, space);
  TPSIM_TRY(SearchResult found,
            search(searched, shared.next(first_share(named.scenario, space.gpus))));
  const bool has_faster = searched.stack.choices.parts != named.scenario.stack.choices.parts;
  if (found.plans.empty() && has_faster) {
    TPSIM_TRY(found, search(named.scenario, shared.next(0.5)));
  }
  const bool lacks_memory = found.plans.empty() && found.nearest_miss;
  if (lacks_memory && named.scenario.stack.name != own_stack(named.scenario.profile)) {
    if (auto fitting = other_software(named, shared, search)) {
      const std::string stack = std::exchange(named, std::move(fitting->named)).stack;
      found = std::move(fitting->found);
      std::string changes;
      if (named.stack != stack) {
        changes = " --stack " + named.stack;
        named.stack_reason.clear();
      }
      const PartValues parts = found.tried.empty() ? PartValues{} : found.tried.front().parts;
      for (const auto& [part, value] : parts) {
        if (row_of(part).get(named.scenario.stack) == value) continue;
        changes += fmt::format(" {} {}", option_of(part), text_of(row_of(part), value));
      }
      named.remedy =
          fmt::format("no plan fits with the defaults of {}; planned with{}", stack, changes);
    }
  }
  adopt_parts(found.tried, named);
  return found;
}

}  // namespace tpsim::app
