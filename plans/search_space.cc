// What a search space allows, and spaces made from others.
#include <fmt/format.h>

#include <algorithm>

#include "plans/search.h"
#include "sim/predict.h"

namespace tpsim {

Status check_space(const Scenario& scenario, const SearchSpace& space) {
  TPSIM_TRY_STATUS(validate(scenario.model));
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t available = cluster.nodes * cluster.gpus_per_node;
  if (space.gpus < 1 || space.gpus > available) {
    return Error{
        ErrorKind::kBadInput,
        fmt::format("{} GPUs asked for; cluster {} has {}", space.gpus, cluster.name, available),
        "--gpus", fmt::format("choose between 1 and {}", available)};
  }
  if (space.gpus > cluster.gpus_per_node && space.gpus % cluster.gpus_per_node != 0) {
    const std::int64_t below = space.gpus / cluster.gpus_per_node * cluster.gpus_per_node;
    return Error{ErrorKind::kBadInput,
                 fmt::format("{} GPUs do not fill nodes of {}", space.gpus, cluster.gpus_per_node),
                 "--gpus",
                 fmt::format("the nearest are {} and {}", below, below + cluster.gpus_per_node)};
  }
  const bool without =
      std::any_of(space.ep.begin(), space.ep.end(), [](auto ep) { return ep > 1; });
  if (without && !has_experts(scenario.model)) {
    return Error{ErrorKind::kBadInput, fmt::format("{} has no experts", scenario.model.name),
                 "--ep", "leave it out; expert parallelism is for models with experts"};
  }
  if (space.global_batch < 1) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("a global batch of {} sequences", space.global_batch),
                 "--global-batch", "it must be at least 1"};
  }
  return Ok{};
}

Bytes memory_limit(const Scenario& scenario, const SearchSpace& space) {
  const Bytes at_risk = peak_at_risk(scenario, space.oom_risk);
  return space.memory_limit > Bytes() ? std::min(space.memory_limit, at_risk) : at_risk;
}

Bytes memory_for(const Scenario& scenario, const SearchSpace& space, Bytes peak) {
  return scenario.profile.device.memory * (peak / peak_at_risk(scenario, space.oom_risk));
}

bool may_offload(const Scenario& scenario, const SearchSpace& space) {
  const std::vector<Offload>& choices = scenario.stack.choices.offload;
  const SettingValue offloaded{Setting::kOffload, static_cast<std::int64_t>(Offload::kOptimizer)};
  return space.offload.empty() &&
         std::find(choices.begin(), choices.end(), Offload::kOptimizer) != choices.end() &&
         std::find(space.excluded.begin(), space.excluded.end(), offloaded) == space.excluded.end();
}

std::string commonest_reason(const SearchResult& found) {
  const auto most =
      std::max_element(found.pruned.begin(), found.pruned.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == found.pruned.end() ? "" : most->first;
}

std::string_view name_of(Objective objective) {
  switch (objective) {
    case Objective::kTime: return "time";
    case Objective::kMemory: return "memory";
    case Objective::kCost: return "cost";
    case Objective::kEnergy: return "energy";
  }
  return "?";
}

SearchSpace with_setting(SearchSpace space, const SettingValue& value) {
  std::erase(space.excluded, value);
  switch (value.setting) {
    case Setting::kTp: space.tp = {value.value}; break;
    case Setting::kPp: space.pp = {value.value}; break;
    case Setting::kDp: space.dp = {value.value}; break;
    case Setting::kCp: space.cp = {value.value}; break;
    case Setting::kEp: space.ep = {value.value}; break;
    case Setting::kZero: space.zero = {value.value}; break;
    case Setting::kMicroBatch: space.micro_batch = {value.value}; break;
    case Setting::kVirtualStages: space.virtual_stages = {value.value}; break;
    case Setting::kRecompute: space.recompute = {static_cast<Recompute>(value.value)}; break;
    case Setting::kSequenceParallel: space.sequence_parallel = {value.value != 0}; break;
    case Setting::kAttention: space.attention = {static_cast<AttentionKind>(value.value)}; break;
    case Setting::kSchedule: space.schedule = {static_cast<ScheduleKind>(value.value)}; break;
    case Setting::kRankOrder: space.rank_order = {static_cast<RankOrder>(value.value)}; break;
    case Setting::kOffload: space.offload = {static_cast<Offload>(value.value)}; break;
  }
  return space;
}

}  // namespace tpsim
