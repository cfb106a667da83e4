// What a search space allows, and spaces made from others.
#include <fmt/format.h>

#include <algorithm>

#include "plans/search/search.h"
#include "plans/search/search_work.h"
#include "sim/layers/expert_prices.h"
#include "sim/layers/low_precision.h"
#include "sim/step/predict.h"

namespace tpsim {

namespace {

// An error where none of the precisions asked for is possible: a search counts impossible ones.
Status check_some_precision(const Scenario& scenario, const std::vector<std::int64_t>& asked) {
  std::optional<Error> first;
  for (const std::int64_t precision : asked) {
    const Status status = check_precision(scenario, static_cast<Precision>(precision));
    if (status.ok()) return Ok{};
    if (!first) first = status.error();
  }
  return first ? Status(*first) : Status(Ok{});
}

}  // namespace

Status check_space(const Scenario& scenario, const SearchSpace& space, int top) {
  TPSIM_TRY_STATUS(validate(scenario.model));
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t available = gpus_for(cluster, space.gpus);
  if (space.gpus < 1 || space.gpus > available) {
    return bad_input(
        fmt::format("{} GPUs asked for; cluster {} has {}", space.gpus, cluster.name, available),
        "--gpus", fmt::format("choose between 1 and {}", available));
  }
  const std::int64_t node = node_size(cluster, space.gpus);
  if (space.gpus > node && space.gpus % node != 0) {
    const std::int64_t below = space.gpus / node * node;
    return bad_input(fmt::format("{} GPUs do not fill nodes of {}", space.gpus, node), "--gpus",
                     fmt::format("the nearest are {} and {}", below, below + node));
  }
  for (const SettingRow& row : setting_rows()) {
    const std::vector<std::int64_t>& asked = space.asked[row.setting];
    const bool in_vain = std::any_of(asked.begin(), asked.end(), [](auto n) { return n > 1; });
    if (row.suits == nullptr || row.suits(scenario.model) || !in_vain) continue;
    return bad_input(fmt::format("{} has no {}", scenario.model.name, row.needs),
                     std::string(option_of(row.setting)),
                     fmt::format("leave it out; it is for models with {}", row.needs));
  }
  TPSIM_TRY_STATUS(check_some_precision(scenario, space.asked[Setting::kPrecision]));
  TPSIM_TRY_STATUS(check_load(scenario.stack, scenario.model));
  if (space.global_batch < 1) {
    return bad_input(fmt::format("a global batch of {} sequences", space.global_batch),
                     "--global-batch", "it must be at least 1");
  }
  const SearchWork work = work_of(scenario, space, top);
  return check_work(fmt::format("a search of {:.1e} plans", work.plans), work.estimate,
                    scenario.limits);
}

Bytes memory_limit(const Scenario& scenario, const SearchSpace& space) {
  const Bytes at_risk = peak_at_risk(scenario, space.oom_risk);
  return space.memory_limit > Bytes() ? std::min(space.memory_limit, at_risk) : at_risk;
}

Bytes memory_for(const Scenario& scenario, const SearchSpace& space, Bytes peak) {
  return scenario.profile.device.memory * (peak / peak_at_risk(scenario, space.oom_risk));
}

bool may_offload(const Scenario& scenario, const SearchSpace& space) {
  const SettingValue offloaded{Setting::kOffload, static_cast<std::int64_t>(Offload::kOptimizer)};
  const bool is_tried_anyway = space.around && space.around->offload == Offload::kOptimizer;
  return space.asked[Setting::kOffload].empty() && !is_tried_anyway &&
         scenario.stack.choices.has(offloaded) &&
         std::find(space.excluded.begin(), space.excluded.end(), offloaded) == space.excluded.end();
}

SearchSpace with_setting(SearchSpace space, const SettingValue& value) {
  std::erase(space.excluded, value);
  space.asked[value.setting] = {value.value};
  const SettingRow& row = row_of(value.setting);
  if (row.counts_for != nullptr) return with_setting(std::move(space), *row.counts_for);
  return space;
}

SearchSpace space_around(const Plan& plan) {
  SearchSpace space;
  space.gpus = gpu_count(plan);
  space.global_batch = plan.global_batch;
  space.around = plan;
  for (const SettingRow& row : setting_rows()) {
    const bool is_listed = row.fixed_by_plan && row.role != SettingRole::kGiven;
    if (is_listed) space.asked[row.setting] = {row.get(plan)};
  }
  return space;
}

}  // namespace tpsim
