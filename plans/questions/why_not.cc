#include "plans/questions/why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/check.h"
#include "plans/questions/why_illegal.h"
#include "sim/step/order.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostAsked = 8;  // limit on settings, since all subsets of them are tried

SearchSpace with_settings(SearchSpace space, const std::vector<SettingValue>& values) {
  for (const SettingValue& value : values) space = with_setting(std::move(space), value);
  return space;
}

class Questioner {
 public:
  Questioner(const Scenario& scenario, const SearchSpace& space, int threads)
      : scenario_(scenario), space_(space), threads_(threads) {}

  Result<SearchResult> search_with(const std::vector<SettingValue>& values) const {
    return search(scenario_, with_settings(space_, values), 1, {}, threads_);
  }

  // Removes sets of requested settings, smallest sets first, until a plan fits.
  std::vector<Fix> fixes(const std::vector<SettingValue>& asked) const {
    std::vector<Fix> found;
    const auto all = static_cast<unsigned>(asked.size());
    for (int size = 1; size <= static_cast<int>(all) && found.empty(); ++size) {
      for (unsigned set = 1; set < (1U << all); ++set) {
        if (std::popcount(set) == size) try_without(asked, set, found);
      }
      // If --offload none was given, offloading the optimizer is also a change of one setting.
      if (size == 1) try_offloaded(asked, found);
    }
    std::stable_sort(found.begin(), found.end(), [](const Fix& a, const Fix& b) {
      return a.run.predicted.step < b.run.predicted.step;
    });
    return found;
  }

  std::int64_t enough_gpus(const std::vector<SettingValue>& asked) const {
    const ClusterSpec& cluster = scenario_.cluster;
    const std::int64_t most = gpus_of(cluster);
    SearchSpace space = with_settings(space_, asked);
    for (std::int64_t gpus = 2 * space.gpus; gpus <= most; gpus *= 2) {
      space.gpus = gpus;
      const Result<SearchResult> found = search(scenario_, space, 1, {}, threads_);
      if (found.ok() && !found->plans.empty()) return gpus;
    }
    return 0;
  }

 private:
  void try_without(const std::vector<SettingValue>& asked, unsigned set,
                   std::vector<Fix>& found) const {
    Fix fix;
    std::vector<SettingValue> kept;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      ((set >> i & 1U) != 0 ? fix.given_up.settings : kept).push_back(asked[i]);
    }
    const Result<SearchResult> result = search_with(kept);
    if (!result.ok() || result->plans.empty()) return;
    fix.run = result->plans.front();
    for (const SettingValue& value : fix.given_up.settings) {
      fix.instead.settings.push_back(setting_of(fix.run.plan, value.setting));
    }
    found.push_back(std::move(fix));
  }

  // Tries the requested settings with the optimizer offloaded to the host.
  void try_offloaded(const std::vector<SettingValue>& asked, std::vector<Fix>& found) const {
    const SettingValue none{Setting::kOffload, static_cast<std::int64_t>(Offload::kNone)};
    const SettingValue optimizer{Setting::kOffload, static_cast<std::int64_t>(Offload::kOptimizer)};
    if (space_.asked[Setting::kOffload] != std::vector{none.value}) return;
    std::vector<SettingValue> changed = asked;
    changed.push_back(optimizer);
    const Result<SearchResult> result = search_with(changed);
    if (!result.ok() || result->plans.empty()) return;
    found.push_back({{{none}, {}}, {{optimizer}, {}}, result->plans.front()});
  }

  const Scenario& scenario_;
  SearchSpace space_;
  int threads_;
};

// Returns the change from all requested parts to those of the stack, if a plan then fits.
std::vector<Fix> without_parts(const Scenario& scenario, const SearchSpace& space,
                               const Choices& asked, int threads) {
  if (asked.parts.empty()) return {};
  const Result<SearchResult> found =
      search(scenario, with_settings(space, asked.settings), 1, {}, threads);
  if (!found.ok() || found->plans.empty()) return {};
  Fix fix{{{}, asked.parts}, {}, found->plans.front()};
  for (const auto& [part, value] : asked.parts) {
    fix.instead.parts[part] = row_of(part).get(scenario.stack);
  }
  return {std::move(fix)};
}

}  // namespace

std::string to_string(const Choices& choices) {
  const std::string parts = to_string(choices.parts);
  const bool both = !choices.settings.empty() && !parts.empty();
  return to_string(choices.settings) + (both ? "," : "") + parts;
}

std::vector<TermDifference> term_differences(const Prediction& best, const Prediction& other) {
  TPSIM_CHECK(best.breakdown.size() == other.breakdown.size(), "predictions of different terms");
  std::vector<TermDifference> differences;
  for (std::size_t i = 0; i < best.breakdown.size(); ++i) {
    differences.push_back({std::string(name_of(best.breakdown[i].kind)), best.breakdown[i].time,
                           other.breakdown[i].time});
  }
  return differences;
}

Result<WhyNot> why_not(const Scenario& scenario, const SearchSpace& space, const Choices& asked,
                       int threads, const std::function<void(double)>& progress) {
  const std::size_t count = asked.settings.size() + asked.parts.size();
  if (count == 0 || count > kMostAsked) {
    return bad_input(fmt::format("{} settings are given", count), "--why-not",
                     fmt::format("give 1 to {} settings", kMostAsked));
  }
  WhyNot answer;
  answer.asked = asked;
  TPSIM_TRY(const SearchResult whole, search(scenario, space, 1, progress, threads));
  if (whole.plans.empty()) {
    return Error{ErrorKind::kDoesNotFit, "no plan fits, with or without these settings",
                 "--why-not", "tpsim plan with the same options prints how much memory is missing"};
  }
  answer.best = whole.plans.front();
  answer.tried = whole.tried;
  // Both plans of a comparison use the same software, except for the requested parts.
  const Scenario chosen = with_found_parts(scenario, whole);
  Scenario requested = chosen;
  requested.stack = with_parts(requested.stack, asked.parts);
  const Questioner questioner(requested, space, threads);
  TPSIM_TRY(const SearchResult found, questioner.search_with(asked.settings));
  if (!found.plans.empty()) {
    answer.other = found.plans.front();
    answer.waterfall = term_differences(answer.best.predicted, answer.other->predicted);
    answer.ties = is_tie(answer.best.predicted.step, answer.other->predicted.step);
    return answer;
  }
  answer.nearest_miss = found.nearest_miss;
  if (!answer.nearest_miss) {
    answer.illegal = deciding_reason(requested, with_settings(space, asked.settings), found);
    if (answer.illegal.empty()) answer.illegal = "no layout with these degrees uses all GPUs";
  }
  answer.fixes = without_parts(chosen, space, asked, threads);
  if (answer.fixes.empty()) answer.fixes = questioner.fixes(asked.settings);
  answer.enough_gpus = questioner.enough_gpus(asked.settings);
  return answer;
}

}  // namespace tpsim
