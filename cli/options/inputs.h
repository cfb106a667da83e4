// Inputs of commands: scenario, search space and plan, read from options and a plan file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/named_scenario.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_contents.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim::cli {

// Adds to an error where the wrong name comes from: the option, else the plan file, else the
// cluster that refers to it. An error that already states a location is returned unchanged.
template <class T>
Result<T> blaming(Result<T> result, const Arguments& arguments, Opt opt,
                  const std::string& cluster = "") {
  if (result.ok() || !result.error().where.empty()) return result;
  Error error = result.error();
  if (arguments.has(opt)) {
    const std::string_view instead = possible_instead(row_of(opt).name, *arguments[opt]);
    if (!instead.empty()) error.hint = instead;
  }
  if (arguments.has(opt) || (arguments.positional.empty() && cluster.empty())) {
    error.where = row_of(opt).name;
  } else {
    error.where = arguments.positional.empty() ? "cluster " + cluster : arguments.positional;
  }
  return error;
}

// Returns the plan of the plan file on the command line, if there is one.
Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments);

// Returns the entries that a saved plan names and whose contents have changed since it was saved
// ("profile h100-sxm"). Skips names that options override. Empty if the plan does not store hashes.
std::vector<std::string> changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                                          const PlanFile& file);
// Prints a warning on stderr for each changed entry. Prints nothing with --quiet or under `tpsim
// call`.
void say_changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                          const PlanFile& file);

// Inputs that a command gets from sources other than options and plan file.
struct KnownInputs {
  std::string model;  // path of a checkpoint's config.json; overrides the plan file's model
  std::optional<std::int64_t> seq;  // sequence length of a token file; overrides that of the model
  std::string stack;                // default stack; if empty, that of the cluster
};

// Returns the model of the options, else that of the plan file. The options may override the
// sequence length.
Result<ModelSpec> load_model(const Arguments& arguments, const Catalogue& catalogue,
                             const std::optional<PlanFile>& file, const KnownInputs& known = {});

// Returns the scenario. Options override the plan file, which overrides defaults of the cluster.
// Options that repeat the plan file have no effect (cli/options/effective_file.h). The cluster
// this-machine is the machine that the profile describes. It is the default if such a profile and
// no cluster is named.
Result<NamedScenario> load_scenario(const Arguments& arguments, const std::optional<PlanFile>& file,
                                    const KnownInputs& known = {});

// Returns the scenario of a plan that tpsim itself executes. Training options come from the stack
// in `named`. Memory overheads and host times come from tpsim's own stack.
Result<NamedScenario> executed_here(NamedScenario named);

// Returns the search space. Settings without an option are searched. A plan file fixes all settings
// as space_around() does, except those that an option overrides.
Result<SearchSpace> search_space(const Arguments& arguments, const Scenario& scenario,
                                 const std::optional<PlanFile>& file);

// Returns the settings listed in --exclude or --why-not.
Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt);
// Returns the number of threads for a search.
Result<int> threads_of(const Arguments& arguments);

// Returns an error if the device cannot run the plan.
Status check_runs_on(const Plan& plan, std::string_view device);

// Defaults of plan settings that neither options nor a plan file state.
struct PlanDefaults {
  AttentionKind attention = AttentionKind::kUnfused;
  DType dtype = DType::kBFloat16;
  bool narrow_gradients = false;       // gradients in the dtype of the weights
  int zero = 1, zero_in_pipeline = 1;  // the stack's stage, and with several pipeline stages
  // true: the default batch is about the model's usual batch, or 4 M tokens, rounded to a multiple
  // of (dp x micro-batch). false: one micro-batch per data-parallel rank.
  bool usual_batch = true;
};
// Returns flash attention if model and software support it, and the usual training dtype of the
// GPU.
PlanDefaults plan_defaults(const Scenario& scenario);

// Returns the plan of `simulate`: that of the plan file, or tp = pp = dp = 1 with the
// defaults and without recompute. Options override it. Layers are divided among the stages again if
// an option requests it or if the division does not match the model. The result satisfies
// validate().
Result<Plan> single_plan(const Arguments& arguments, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults);

PlanFile plan_file_of(const NamedScenario& named, const Plan& plan);

// Returns an error if one of `options` was given, with the reason `why`.
template <class Options = std::initializer_list<Opt>>
Status refuse(const Arguments& arguments, const Options& options, const char* why) {
  for (const Opt opt : options) {
    if (arguments.has(opt)) return bad_input("cannot be used here", row_of(opt).name, why);
  }
  return Ok{};
}

// Stores the best searched values of software parts in `named`, so that later predictions and saved
// plans use them, and all tried combinations. Must be called after every search.
void adopt_parts(const std::vector<TriedParts>& tried, NamedScenario& named);

// Returns "dispatcher=deepep 10.2 s, dispatcher=alltoall 11.4 s"; empty if no part was searched.
std::string tried_view(const Terminal& terminal, const NamedScenario& named);
// Returns {"dispatcher": "deepep"}.
JsonValue parts_json(const PartValues& parts);
// Adds "parts_searched" to the report.
void add_tried(JsonValue& report, const NamedScenario& named);

}  // namespace tpsim::cli
