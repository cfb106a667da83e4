// What a command works on: scenario, search space and plan, from the options and a plan file.
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

// Says where a name that cannot be loaded came from: the option, else the plan file, else the
// cluster that names it. An error about a file already says where.
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

// The plan file that the command line names, if it names one.
Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments);

// What the names in a saved plan stood for: "profile h100-sxm", each that has other contents here
// than when the plan was saved and that no option replaces. Empty for a plan that notes none.
std::vector<std::string> changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                                          const PlanFile& file);
// Says so on stderr, once for each, where a person called the program.
void say_changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                          const PlanFile& file);

// What a command knows of its inputs besides options and plan file.
struct KnownInputs {
  std::string model;                // a checkpoint's config.json; goes before the plan file's model
  std::optional<std::int64_t> seq;  // of the sequences in a file of tokens; before the model's
  std::string stack;                // where nobody names one; empty: the cluster's
};

// The model of the options, else of the plan file, with the sequence length of the options.
Result<ModelSpec> load_model(const Arguments& arguments, const Catalogue& catalogue,
                             const std::optional<PlanFile>& file, const KnownInputs& known = {});

// Options win over the plan file, the plan file over the cluster's defaults; an option that repeats
// the plan file changes nothing (cli/options/effective_file.h). The cluster this-machine is that of
// the profile, and stands where a profile has one and no other is named.
Result<NamedScenario> load_scenario(const Arguments& arguments, const std::optional<PlanFile>& file,
                                    const KnownInputs& known = {});

// The scenario of a plan that this program executes itself: with the training options of the named
// stack, but not the memory and the host's time of a framework that is not here.
Result<NamedScenario> executed_here(NamedScenario named);

// The space of a search: every option left out leaves its setting free. A plan file fixes what
// space_around() of its plan fixes, where no option gives another value.
Result<SearchSpace> search_space(const Arguments& arguments, const Scenario& scenario,
                                 const std::optional<PlanFile>& file);

// What --exclude or --why-not lists.
Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt);
// Threads that may search.
Result<int> threads_of(const Arguments& arguments);

// An error for a plan that the device cannot run.
Status check_runs_on(const Plan& plan, std::string_view device);

// What a plan is where neither options nor a plan file say so.
struct PlanDefaults {
  AttentionKind attention = AttentionKind::kUnfused;
  DType dtype = DType::kBFloat16;
  // Else one micro-batch on each data-parallel rank; with it the multiple of these that is nearest
  // to the model's usual batch, or to 4 M tokens.
  bool usual_batch = true;
};
// Flash attention where model and software have it, the dtype of training that the GPU has.
PlanDefaults plan_defaults(const Scenario& scenario);

// The plan of `simulate`: the plan file's, or tp = pp = dp = 1 with ZeRO 1, no recompute and the
// defaults, changed by the options. Stages are cut anew when they no longer make up the model, or
// when asked for. The result has passed validate().
Result<Plan> single_plan(const Arguments& arguments, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults);

PlanFile plan_file_of(const NamedScenario& named, const Plan& plan);

// An error for the first of `options` that was given; `why` says what stands against it.
template <class Options = std::initializer_list<Opt>>
Status refuse(const Arguments& arguments, const Options& options, const char* why) {
  for (const Opt opt : options) {
    if (arguments.has(opt)) return bad_input("is of no use here", row_of(opt).name, why);
  }
  return Ok{};
}

// Gives `named` the parts that a search chose where the stack leaves some open, so that what
// follows is predicted and saved with them, and notes all combinations. Call it after every search.
void adopt_parts(const std::vector<TriedParts>& tried, NamedScenario& named);

// "dispatcher=deepep 10.2 s, dispatcher=alltoall 11.4 s"; empty where nothing was open.
std::string tried_view(const Terminal& terminal, const NamedScenario& named);
// {"dispatcher": "deepep"}
JsonValue parts_json(const PartValues& parts);
// Adds them as "parts_searched".
void add_tried(JsonValue& report, const NamedScenario& named);

}  // namespace tpsim::cli
