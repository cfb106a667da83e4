// Reads the search space from options.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "plans/search/usual_batch.h"

namespace tpsim::cli {
namespace {

constexpr std::int64_t kMostUneven = 8;
constexpr std::int64_t kMostThreads = 256;
Status ask_for(const Arguments& arguments, const SettingRow& row, SearchSpace& space) {
  if (row.role == SettingRole::kGiven || !arguments.has(opt_of(row.setting))) return Ok{};
  TPSIM_TRY(SettingChoices choices, setting_choices(arguments, row.setting));
  for (const std::int64_t value : choices.values) {
    const SettingRow* count = count_setting_of({row.setting, value});
    if (count != nullptr) space.asked[count->setting] = choices.counts;
  }
  if (row.counts_for == nullptr) space.asked[row.setting] = std::move(choices.values);
  return Ok{};
}

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
    return option_error(
        Opt::kExclude, fmt::format("no plan of this search has {}", to_string(value)),
        !is_asked  ? fmt::format("{} already excludes this value", option_of(value.setting))
        : too_many ? fmt::format("the search has {} GPUs", space.gpus)
                   : fmt::format("a step has {} sequences", space.global_batch));
  }
  return Ok{};
}

}  // namespace

Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt) {
  if (!arguments.has(opt)) return std::vector<SettingValue>();
  Result<std::vector<SettingValue>> values = parse_settings(*arguments[opt]);
  if (!values.ok()) return option_error(opt, values.error().message, values.error().hint);
  return values;
}

Result<int> threads_of(const Arguments& arguments) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  TPSIM_TRY(const std::int64_t threads,
            integer_of(arguments, Opt::kThreads, cores, {1, kMostThreads}));
  return static_cast<int>(threads);
}

Result<SearchSpace> search_space(const Arguments& arguments, const Scenario& scenario,
                                 const std::optional<PlanFile>& file) {
  const ClusterSpec& cluster = scenario.cluster;
  if (!arguments.has(Opt::kGpus) && !file) {
    return option_error(
        Opt::kGpus, "the number of GPUs is missing",
        fmt::format("cluster {} has {} GPUs", cluster.name, cluster.nodes * cluster.gpus_per_node));
  }
  SearchSpace space;
  if (file) space = space_around(file->plan);
  TPSIM_TRY(space.gpus, integer_of(arguments, Opt::kGpus, space.gpus));
  const std::int64_t usual_batch =
      file ? space.global_batch : searched_global_batch(scenario.model, space.gpus);
  TPSIM_TRY(space.global_batch, integer_of(arguments, opt_of(Setting::kGlobalBatch), usual_batch));
  for (const SettingRow& row : setting_rows()) TPSIM_TRY_STATUS(ask_for(arguments, row, space));
  TPSIM_TRY(space.excluded, settings_of(arguments, Opt::kExclude));
  TPSIM_TRY_STATUS(check_excluded(space));
  TPSIM_TRY(space.uneven_ends,
            integer_of(arguments, Opt::kUnevenEnds, space.uneven_ends, {0, kMostUneven}));
  TPSIM_TRY(space.objective, choice_of(arguments, Opt::kObjective, space.objective));
  TPSIM_TRY(space.memory_limit, bytes_of(arguments, Opt::kMaxMemory));
  const DeviceFacts& device = scenario.profile.device;
  if (space.memory_limit > device.memory) {
    return option_error(
        Opt::kMaxMemory,
        fmt::format("{} are more than the {} of memory of one {}", to_string(space.memory_limit),
                    to_string(device.memory), scenario.profile.name),
        "remove the option to use all memory");
  }
  TPSIM_TRY(space.oom_risk, probability_of(arguments, Opt::kMaxOom, space.oom_risk));
  return space;
}

}  // namespace tpsim::cli
