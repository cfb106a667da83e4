#include "plans/search/search_space.h"

#include <algorithm>

#include "sim/step/predict.h"

namespace tpsim {

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
