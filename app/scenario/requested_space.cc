// Makes the search space of a request.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "app/scenario/field.h"
#include "app/scenario/plan_request.h"
#include "plans/search/usual_batch.h"

namespace tpsim::app {
namespace {

// Returns an error if an excluded value is not part of the search space, because that is probably a
// mistake.
Status check_excluded(const SearchSpace& space) {
  for (const SettingValue& value : space.excluded) {
    const SettingRow& row = row_of(value.setting);
    const std::vector<std::int64_t>& asked = space.asked[value.setting];
    const bool is_asked = asked.empty() || std::count(asked.begin(), asked.end(), value.value) > 0;
    const bool shares_gpus = row.key == "tp" || row.key == "pp" || row.key == "dp" ||
                             row.key == "cp" || row.key == "ep" || row.key == "etp";
    const bool too_many = shares_gpus && value.value > space.gpus;
    const bool too_large =
        value.setting == Setting::kMicroBatch && value.value > space.global_batch;
    if (is_asked && !too_many && !too_large) continue;
    return field_error(
        Field::kExclude, fmt::format("no plan of this search has {}", to_string(value)),
        !is_asked  ? fmt::format("{} already excludes this value", option_of(value.setting))
        : too_many ? fmt::format("the search has {} GPUs", space.gpus)
                   : fmt::format("a step has {} sequences", space.global_batch));
  }
  return Ok{};
}

}  // namespace

Result<SearchSpace> search_space(const SearchRequest& request, const Scenario& scenario,
                                 const std::optional<PlanFile>& file) {
  const ClusterSpec& cluster = scenario.cluster;
  if (request.gpus == 0 && !file) {
    return field_error(Field::kGpus, "the number of GPUs is missing",
                       fmt::format("cluster {} has {} GPUs", cluster.name, gpus_of(cluster)));
  }
  SearchSpace space;
  if (file) space = space_around(file->plan);
  if (request.gpus > 0) space.gpus = request.gpus;
  if (!file) space.global_batch = searched_global_batch(scenario.model, space.gpus);
  const SettingLists& stated = request.settings.values;
  for (const SettingRow& row : setting_rows()) {
    const std::vector<std::int64_t>& values = stated[row.setting];
    if (row.setting == Setting::kGlobalBatch && !values.empty())
      space.global_batch = values.front();
    if (row.role != SettingRole::kGiven && !values.empty()) space.asked[row.setting] = values;
  }
  space.excluded = request.excluded;
  TPSIM_TRY_STATUS(check_excluded(space));
  space.uneven_ends = request.uneven_ends.value_or(space.uneven_ends);
  space.objective = request.objective;
  if (request.within > Seconds()) {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> within(request.within.value());
    space.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(within);
  }
  space.memory_limit = request.memory_limit;
  const DeviceFacts& device = scenario.profile.device;
  if (space.memory_limit > device.memory) {
    return field_error(
        Field::kMaxMemory,
        fmt::format("{} are more than the {} of memory of one {}", to_string(space.memory_limit),
                    to_string(device.memory), scenario.profile.name),
        "remove the option to use all memory");
  }
  space.oom_risk = request.oom_risk.value_or(space.oom_risk);
  return space;
}

}  // namespace tpsim::app
