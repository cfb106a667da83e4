// Fills the requests of app/ from options and a plan file.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "app/scenario/fit.h"
#include "app/scenario/plan_request.h"
#include "app/scenario/scenario_request.h"
#include "cli/options/options.h"
#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "plans/questions/why_not.h"

namespace tpsim::cli {

// Returns the plan of the request or of the plan file on the command line, if there is one.
Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments);

// Reads the options of the scenario. Prints on stderr which entries have changed since the plan was
// saved; nothing with --quiet or under `tpsim call`.
Result<ScenarioRequest> scenario_request(const Arguments& arguments,
                                         const std::optional<PlanFile>& file);

// Reads the options of a single plan. Error if an option has several values.
Result<StatedSettings> single_settings(const Arguments& arguments);
// Reads the options of a search; sizes_request() without --gpus, which may list several numbers.
Result<SearchRequest> search_request(const Arguments& arguments);
Result<SearchRequest> sizes_request(const Arguments& arguments);

// Reads --max-oom and --allow-oom.
Result<AcceptedRisk> accepted_risk(const Arguments& arguments);

// Returns the settings listed in --exclude.
Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt);
// Returns the settings and software parts listed in --why-not.
Result<Choices> choices_of(const Arguments& arguments, Opt opt);
// Returns the number of threads for a search: --threads, or else the usual number, which is that of
// the cores unless it was set.
Result<int> threads_of(const Arguments& arguments);
void set_usual_threads(int threads);

// Returns an error if one of `options` was given, with the reason `why`.
template <class Options = std::initializer_list<Opt>>
Status refuse(const Arguments& arguments, const Options& options, const char* why) {
  for (const Opt opt : options) {
    if (arguments.has(opt)) return bad_input("cannot be used here", row_of(opt).name, why);
  }
  return Ok{};
}
// Returns an error if an option other than `meant` was given, with the reason `why`.
Status refuse_others(const Arguments& arguments, std::initializer_list<Opt> meant, const char* why);

}  // namespace tpsim::cli
