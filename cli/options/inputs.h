// Inputs of commands: scenario, search space and plan, from options and a plan file.
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

// Adds the source of a name that cannot be loaded: the option, else the plan file, else the cluster
// that names it. Errors that have a location are unchanged.
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

// Returns the plan file on the command line, if there is one.
Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments);

// Returns names in a saved plan whose contents have changed since it was saved ("profile
// h100-sxm"). Names replaced by options are skipped. Empty if the plan does not store hashes.
std::vector<std::string> changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                                          const PlanFile& file);
// Prints each of them on stderr, if a user started the program without --quiet.
void say_changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                          const PlanFile& file);

// Inputs that a command has from other sources than options and plan file.
struct KnownInputs {
  std::string model;                // a checkpoint's config.json; overrides the plan file's model
  std::optional<std::int64_t> seq;  // sequence length of a token file; overrides the model's
  std::string stack;                // default stack; empty: the cluster's
};

// Returns the model of the options, else of the plan file, with the sequence length of the options.
Result<ModelSpec> load_model(const Arguments& arguments, const Catalogue& catalogue,
                             const std::optional<PlanFile>& file, const KnownInputs& known = {});

// Options override the plan file, which overrides the cluster's defaults. An option that repeats
// the plan file has no effect (cli/options/effective_file.h). The cluster this-machine is the
// profile's machine. It is the default if a profile has one and no other cluster is named.
Result<NamedScenario> load_scenario(const Arguments& arguments, const std::optional<PlanFile>& file,
                                    const KnownInputs& known = {});

// Returns the scenario for a plan that tpsim executes itself. Training options come from the named
// stack; memory overheads and host times from tpsim's own stack.
Result<NamedScenario> executed_here(NamedScenario named);

// Returns the search space. A setting without an option is free. A plan file fixes settings as
// space_around() does, unless an option gives another value.
Result<SearchSpace> search_space(const Arguments& arguments, const Scenario& scenario,
                                 const std::optional<PlanFile>& file);

// Returns the settings listed in --exclude or --why-not.
Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt);
// Returns the number of threads for a search.
Result<int> threads_of(const Arguments& arguments);

// Returns an error for a plan that the device cannot run.
Status check_runs_on(const Plan& plan, std::string_view device);

// Default plan settings if neither options nor a plan file state them.
struct PlanDefaults {
  AttentionKind attention = AttentionKind::kUnfused;
  DType dtype = DType::kBFloat16;
  bool narrow_gradients = false;  // gradients in the dtype of the weights
  // Whether the default batch is near the model's usual batch, or 4 M tokens, rounded to a multiple
  // of (dp x micro-batch). Otherwise it is one micro-batch per data-parallel rank.
  bool usual_batch = true;
};
// Returns flash attention if model and software support it, and the GPU's usual training dtype.
PlanDefaults plan_defaults(const Scenario& scenario);

// Returns the plan of `simulate`: the plan file's, or tp = pp = dp = 1 with ZeRO 1, no recompute
// and the defaults, changed by the options. Stages are cut again if requested, or if they do not
// add up to the model. The result has passed validate().
Result<Plan> single_plan(const Arguments& arguments, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults);

PlanFile plan_file_of(const NamedScenario& named, const Plan& plan);

// Returns an error for the first of `options` that was given; `why` is the reason.
template <class Options = std::initializer_list<Opt>>
Status refuse(const Arguments& arguments, const Options& options, const char* why) {
  for (const Opt opt : options) {
    if (arguments.has(opt)) return bad_input("cannot be used here", row_of(opt).name, why);
  }
  return Ok{};
}

// Applies the best searched parts to `named`, for later predictions and saved plans, and stores all
// combinations. Must be called after every search.
void adopt_parts(const std::vector<TriedParts>& tried, NamedScenario& named);

// Returns "dispatcher=deepep 10.2 s, dispatcher=alltoall 11.4 s"; empty if no part was searched.
std::string tried_view(const Terminal& terminal, const NamedScenario& named);
// Returns {"dispatcher": "deepep"}.
JsonValue parts_json(const PartValues& parts);
// Adds "parts_searched" to the report.
void add_tried(JsonValue& report, const NamedScenario& named);

}  // namespace tpsim::cli
