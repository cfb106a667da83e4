#include "cli/options/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/options/assumed.h"
#include "cli/options/effective_file.h"
#include "cli/options/values.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/machine/node_rate.h"
#include "core/model/model_support.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "costs/machine_cluster.h"
#include "sim/step/load_scenario.h"

namespace tpsim::cli {

Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments) {
  if (arguments.positional.empty()) return std::optional<PlanFile>();
  TPSIM_TRY(PlanFile file, read_plan(arguments.positional));
  return std::optional<PlanFile>(std::move(file));
}

Result<ModelSpec> load_model(const Arguments& arguments, const Catalogue& catalogue,
                             const std::optional<PlanFile>& file, const KnownInputs& known) {
  ModelSpec model;
  if (arguments.has(Opt::kModel)) {
    TPSIM_TRY(model,
              blaming(catalogue.load_model(*arguments[Opt::kModel]), arguments, Opt::kModel));
    if (file) model = model_of_plan_file(*file, std::move(model));
  } else if (!known.model.empty()) {
    TPSIM_TRY(model, catalogue.load_model(known.model));
  } else if (file) {
    model = file->model;
  } else {
    return option_error(Opt::kModel, "the model is missing",
                        "give a name of tpsim list models, or a config.json");
  }
  TPSIM_TRY(model.seq, integer_of(arguments, Opt::kSeq, known.seq.value_or(model.seq)));
  if (arguments.has(Opt::kAttentionDropout)) {
    const auto dropout = parse_number<double>(*arguments[Opt::kAttentionDropout]);
    if (!dropout || !(*dropout >= 0 && *dropout < 1)) {
      return option_error(
          Opt::kAttentionDropout,
          fmt::format("'{}' is not a probability below 1", *arguments[Opt::kAttentionDropout]),
          "write 0, or a share such as 0.1");
    }
    model.attention_dropout = *dropout;
  }
  TPSIM_TRY_STATUS(validate(model));
  TPSIM_TRY_STATUS(check_plannable(model));
  return model;
}

namespace {

constexpr const char* kDefaultCluster = "jean-zay-a100";

std::string names_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Error no_cluster(const Catalogue& catalogue, const std::string& profile) {
  std::vector<std::string> fitting;
  for (const std::string& name : catalogue.list(CatalogueKind::kClusters)) {
    const Result<ClusterSpec> cluster = catalogue.load_cluster(name);
    if (cluster.ok() && (profile.empty() || cluster->profile == profile)) fitting.push_back(name);
  }
  return option_error(
      Opt::kCluster, "the cluster is missing",
      profile.empty() || fitting.empty()
          ? "choose from " + names_text(catalogue.list(CatalogueKind::kClusters)) +
                ", or give a file"
          : fmt::format("clusters with profile {}: {}", profile, names_text(fitting)));
}

// Whether the command predicts on a cluster. Other commands run on this machine or only write
// files.
bool needs_cluster(Command command) {
  switch (command) {
    case Command::kPlan:
    case Command::kSimulate:
    case Command::kExplain:
    case Command::kCampaign: return true;
    default: return false;
  }
}

// Returns the name of the cluster: `name` from an option or plan file, else this-machine if the
// profile describes one, else the usual cluster of the model.
Result<std::string> cluster_name(const Arguments& arguments, const Catalogue& catalogue,
                                 const std::string& name, const ModelSpec& model) {
  if (name.find(',') != std::string::npos) {
    return option_error(
        Opt::kCluster, "names several clusters, but all GPUs of a plan must be of one kind",
        "plan each kind separately, or all GPUs with the --profile of the slowest kind");
  }
  if (!name.empty()) return name;
  const std::string profile = arguments[Opt::kProfile].value_or("");
  if (!profile.empty()) {
    TPSIM_TRY(const Profile found,
              blaming(catalogue.load_profile(profile), arguments, Opt::kProfile));
    if (found.machine.devices > 0) return std::string(kThisMachine);
  } else if (!model.usual.cluster.empty()) {
    return model.usual.cluster;
  }
  if (needs_cluster(arguments.command)) return no_cluster(catalogue, profile);
  return std::string(kDefaultCluster);
}

// Loads a profile as the machine, for the cluster this-machine. The profile must be named and
// describe a machine.
Status load_machine(const Arguments& arguments, const Catalogue& catalogue,
                    const std::string& profile, NamedScenario& named) {
  if (profile.empty()) {
    return option_error(Opt::kProfile,
                        "the profile is missing: cluster this-machine needs a measured one",
                        "tpsim profile -o profile.json writes one");
  }
  named.profile = profile;
  Scenario& scenario = named.scenario;
  TPSIM_TRY(scenario.profile,
            blaming(catalogue.load_profile(named.profile), arguments, Opt::kProfile));
  if (scenario.profile.machine.devices == 0) {
    return option_error(
        Opt::kProfile, fmt::format("profile {} does not describe a machine", scenario.profile.name),
        "choose a --cluster, or a profile that tpsim profile wrote");
  }
  scenario.cluster = machine_cluster(scenario.profile);
  return Ok{};
}

// Returns an error if the stack lists the supported values of a part and the value is not among
// them.
Status check_choice(const NamedScenario& named, const PartRow& row, std::int64_t value) {
  const PartLists& lists = named.scenario.stack.choices.parts;
  const auto list = lists.find(row.part);
  const bool is_own = row.get(named.scenario.stack) == value;
  const bool is_listed =
      list == lists.end() || std::count(list->second.begin(), list->second.end(), value) > 0;
  if (is_own || is_listed) return Ok{};
  return option_error(
      opt_of(row.part),
      fmt::format("stack {} does not support {}", named.stack, text_of(row, value)),
      fmt::format("the stack supports {}; --ignore-stack-limits predicts the plan anyway",
                  joined_text(list->second, ", ", [&](auto one) { return text_of(row, one); })));
}

// Applies the software parts that options set. `plan` accepts several values of a part; the search
// then tries each of them.
Status add_asked_parts(const Arguments& arguments, NamedScenario& named) {
  const bool searches = arguments.command == Command::kPlan;
  PartLists asked;
  for (const PartRow& row : part_rows()) {
    const Opt opt = opt_of(row.part);
    if (!arguments.has(opt)) continue;
    const std::string& text = *arguments[opt];
    std::vector<std::int64_t> values;
    for (const std::string_view one :
         searches && !row.is_set ? listed(text) : std::vector<std::string_view>{text}) {
      TPSIM_TRY(const std::int64_t value, part_value(row, one, named.scenario.model));
      if (!arguments.has(Opt::kIgnoreStackLimits)) {
        TPSIM_TRY_STATUS(check_choice(named, row, value));
      }
      values.push_back(value);
    }
    named.parts[row.part] = values.front();
    if (values.size() > 1) asked[row.part] = std::move(values);
  }
  named.scenario.stack = with_parts(std::move(named.scenario.stack), named.parts);
  for (auto& [part, values] : asked) {
    named.parts.erase(part);
    named.scenario.stack.choices.parts[part] = std::move(values);
  }
  return Ok{};
}

Status set_network(NamedScenario& named) {
  if (named.node_gbps == 0) return Ok{};
  ClusterSpec& cluster = named.scenario.cluster;
  if (cluster.nodes == 1) {
    return option_error(Opt::kNodeGbps, fmt::format("cluster {} has only one node", cluster.name),
                        "the option sets the network between nodes: remove it");
  }
  cluster = with_node_rate(std::move(cluster), named.node_gbps);
  return Ok{};
}

// Returns an error if the stack's launcher cannot run the model with any plan.
Status check_stack_runs(const Catalogue& catalogue, const Scenario& scenario) {
  const auto rule_of = [&](const StackSpec& stack) {
    return broken_rule(stack.launcher, RuleScope::kModel, scenario.model, Plan{});
  };
  const LaunchRule* rule = rule_of(scenario.stack);
  if (rule == nullptr) return Ok{};
  std::vector<std::string> others;
  for (const std::string& name : catalogue.list(CatalogueKind::kStacks)) {
    const Result<StackSpec> stack = catalogue.load_stack(name);
    if (stack.ok() && stack->launcher != Launcher::kNone && rule_of(*stack) == nullptr) {
      others.push_back(name);
    }
  }
  return option_error(
      Opt::kStack,
      fmt::format("stack {} cannot run {}: {}", scenario.stack.name, rule->what, rule->why),
      (others.empty() ? "" : names_text(others) + " can run the model; ") +
          "--ignore-stack-limits plans the model anyway");
}

// If a saved plan names a file that cannot be loaded, adds a hint that the plan refers to it.
template <class T>
Result<T> named_in_plan(const std::optional<PlanFile>& file, const Arguments& arguments, Opt option,
                        Result<T> found) {
  if (found.ok() || !file || arguments.has(option) || arguments.has(Opt::kCluster)) return found;
  Error error = found.error();
  if (error.hint.empty()) {
    error.hint =
        fmt::format("the plan file refers to this file: restore it, or give another one with {}",
                    row_of(option).name);
  }
  return error;
}

}  // namespace

Result<NamedScenario> load_scenario(const Arguments& arguments, const std::optional<PlanFile>& file,
                                    const KnownInputs& known) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  say_changed_contents(arguments, catalogue, file.value_or(PlanFile{}));
  TPSIM_TRY(EffectiveFile effective, effective_file(arguments, catalogue, file));
  const PlanFile& names = effective.file;
  NamedScenario named;
  Scenario& scenario = named.scenario;
  if (arguments.has(Opt::kNoLimits)) scenario.limits = kNoLimits;
  named.is_saved = file.has_value();
  named.dropped = std::move(effective.dropped);
  TPSIM_TRY(scenario.model, load_model(arguments, catalogue, file, known));
  if (file) note_dropped(arguments, *file, scenario.model, named.dropped);
  TPSIM_TRY(named.cluster, cluster_name(arguments, catalogue, names.cluster, scenario.model));
  if (named.cluster == kThisMachine) {
    TPSIM_TRY_STATUS(load_machine(arguments, catalogue, names.profile, named));
  } else {
    TPSIM_TRY(scenario.cluster, named_in_plan(file, arguments, Opt::kCluster,
                                              blaming(catalogue.load_cluster(named.cluster),
                                                      arguments, Opt::kCluster)));
    named.profile = names.profile.empty() ? scenario.cluster.profile : names.profile;
    TPSIM_TRY(scenario.profile, blaming(catalogue.load_profile(named.profile), arguments,
                                        Opt::kProfile, named.cluster));
  }
  named.node_gbps = names.node_gbps;
  TPSIM_TRY_STATUS(set_network(named));
  named.cluster_is_default = file ? names.network_assumed : !arguments.has(Opt::kCluster);
  const bool names_no_stack = !arguments.has(Opt::kStack) && known.stack.empty();
  named.stack_is_default = file ? names.stack_assumed : names_no_stack;
  named.settings_assumed = names.settings_assumed;
  named.settings_left = settings_left(arguments, file.has_value());
  const std::string& usual_stack = known.stack.empty() ? scenario.cluster.stack : known.stack;
  named.stack = names.stack.empty() ? usual_stack : names.stack;
  TPSIM_TRY(scenario.stack, named_in_plan(file, arguments, Opt::kStack,
                                          blaming(catalogue.load_stack(named.stack), arguments,
                                                  Opt::kStack, named.cluster)));
  named.parts = names.parts;
  TPSIM_TRY_STATUS(add_asked_parts(arguments, named));
  if (arguments.has(Opt::kIgnoreStackLimits)) {
    scenario.stack = without_limits(std::move(scenario.stack));
  }
  if (needs_cluster(arguments.command)) TPSIM_TRY_STATUS(check_stack_runs(catalogue, scenario));
  scenario.stack = completed_stack(std::move(scenario.stack), {}, scenario);
  return named;
}

Result<NamedScenario> executed_here(NamedScenario named) {
  Scenario& scenario = named.scenario;
  if (scenario.stack.name == own_stack(scenario.profile)) return named;
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(StackSpec own, catalogue.load_stack(std::string(own_stack(scenario.profile))));
  own = completed_stack(std::move(own), {}, scenario);
  scenario.stack = executed_stack(scenario.stack, std::move(own));
  return named;
}

PlanFile plan_file_of(const NamedScenario& named, const Plan& plan) {
  return {named.scenario.model,
          named.cluster,
          named.profile,
          named.stack,
          named.parts,
          plan,
          named.node_gbps,
          named.stack_is_default,
          named.cluster_is_default,
          named.settings_assumed};
}

}  // namespace tpsim::cli
